// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// There is one stage for each part of the body.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  // expected-error@below {{software_pipeline: loop 'i': 3 stages do not fit the 2 parts of its body}}
  %late = sched.software_pipeline %i stages [0, 1, 1]
  transform.yield
}

// -----

// A buffer that lives in one iteration is used in one stage.
func.func @f(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %s = sched.get_block %f "S"
  %i = sched.get_loops %s : !sched.loop
  sched.compute_at %t at %i
  // expected-error@below {{software_pipeline: loop 'i': buffer 'T' lives in one iteration and is used in several stages; double_buffer first}}
  %late = sched.software_pipeline %i stages [0, 1]
  transform.yield
}

// -----

// No dependence is reversed.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  // expected-error@below {{software_pipeline: D[0] reads T[0] before T[0] has been written}}
  %late = sched.software_pipeline %i stages [1, 0]
  transform.yield
}

// -----

// The loop is serial.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 parallel {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 {
    loop.block "D" [i = 10 at %j]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  // expected-error@below {{software_pipeline: loop 'i': it is parallel already, not serial}}
  %late = sched.software_pipeline %i stages [0]
  transform.yield
}
