// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The product of the decision is the extent.
// PAYLOAD: double
// PAYLOAD: loops_D_i
  // expected-error@below {{sample_perfect_tile: loop 'i': the decision [4, 3] is no perfect tile of its extent 10}}
  %t:2 = sched.sample_perfect_tile %i innermost 4 decision [4, 3] : !sched.param, !sched.param

// -----

// The extent has such factors.
func.func @f(%A: memref<7xf32>, %D: memref<7xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 7 {
    loop.block "D" [i = 7 at %i]
        (%x = %A[i] : memref<7xf32>) -> (%D[i] : memref<7xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: loops_D_i
  // expected-error@below {{sample_perfect_tile: loop 'i': its extent 7 has no perfect tile with an innermost factor up to 4}}
  %t = sched.sample_perfect_tile %i innermost 4 : !sched.param
