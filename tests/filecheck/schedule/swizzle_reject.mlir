// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block writes a temporary.
// PAYLOAD: producer_consumer
// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{swizzle: buffer 'D': it is an argument, not a temporary}}
  sched.swizzle %d width 4

// -----

// The last dimension is a multiple of the width.
// PAYLOAD: producer_consumer_6x10
// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{swizzle: buffer 'T': its last dimension is no multiple of the width 4}}
  sched.swizzle %t width 4

// -----

// There are two dimensions.
func.func @f(%A: memref<8xf32>, %D: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "i" %i = 8 {
    loop.block "T" [i = 8 at %i]
        (%x = %A[i] : memref<8xf32>) -> (%T[i] : memref<8xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 8 {
    loop.block "D" [i = 8 at %j]
        (%x = %T[i] : memref<8xf32>) -> (%D[i] : memref<8xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{swizzle: buffer 'T': its last dimension is no multiple of the width 4}}
  sched.swizzle %t width 4
