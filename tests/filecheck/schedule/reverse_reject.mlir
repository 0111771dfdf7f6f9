// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop has no kind yet.
// PAYLOAD: double_12 D(i)
  sched.unroll %i
  // expected-error@below {{reverse: loop 'i': it is unrolled already, not serial}}
  %back = sched.reverse %i

// -----

// No dependence is reversed.
func.func @f(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%a = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %a, %a : f32
      loop.yield %0 : f32
    }
    loop.block "S" [i = 8 at %i - 2] where (%i - 2 >= 0)
        (%t = %T[i] : memref<10xf32>, %u = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.addf %t, %u : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T(i)
  // expected-error@below {{reverse: S[7] reads T[7] before T[7] has been written}}
  %back = sched.reverse %i
