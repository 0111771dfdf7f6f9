// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
func.func @f(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %A[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{pad: block 'S': it does not read 'S'}}
  %p = sched.pad %s "S"

// -----

// Under a condition.
func.func @f(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %A[i] : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{pad: block 'S': it reads 'A' under no condition}}
  %p = sched.pad %s "A"

// -----

// Which fails at the edge only.
func.func @f(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %A[i] where (i mod 2 == 0) else 0.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{pad: block 'S': at i=1 it reads no element of 'A' though its index is inside}}
  %p = sched.pad %s "A"

// -----

// With one value beyond it.
func.func @f(%A: memref<8xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %A[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>, %b = %A[i - 2] where (i - 2 >= 0) else 1.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{pad: block 'S': it reads different values beyond the edge of 'A'}}
  %p = sched.pad %s "A"

// -----

// And it does not write the buffer.
func.func @f(%S: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%a = %S[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      loop.yield %a : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{pad: block 'S': it writes 'S' as well}}
  %p = sched.pad %s "S"
