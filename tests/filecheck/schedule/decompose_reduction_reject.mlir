// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It has an init.
// PAYLOAD: double D(i)
  // expected-error@below {{decompose_reduction: block 'D': it has no implicit init}}
  %init = sched.decompose_reduction %d at %i

// -----

// The init is implicit.
// PAYLOAD: row_sums S(i, k)
  %init = sched.decompose_reduction %s at %k
  // expected-error@below {{decompose_reduction: block 'S': it has no implicit init}}
  %again = sched.decompose_reduction %s at %i

// -----

// The loop is around it.
// PAYLOAD: matmul_doubled C() D(m, n)
  // expected-error@below {{decompose_reduction: loop 'm': it is not around block 'C'}}
  %init = sched.decompose_reduction %c at %m

// -----

// The first round of a loop that is over rows as well is not the first round of each row.
// PAYLOAD: matmul_mkn C(m, k, n)
  %mk = sched.fuse %m, %k
  // expected-error@below {{decompose_reduction: loop 'm_k': it binds spatial and reduce axes alike of block 'C', whose init would run again}}
  %init = sched.decompose_reduction %c at %n

// -----

// Nor is there a first round of a loop that is over nothing.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "k" %k = 4 {
      loop.for "again" %again = 2 {
      loop.for "n" %n = 8 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
      }
    }
  }
  func.return
}

// PAYLOAD: script C(m, k, again, n)
  // expected-error@below {{decompose_reduction: loop 'again': it binds no axis of block 'C', whose init would run again}}
  %init = sched.decompose_reduction %c at %n

// -----

// The target lives there.
func.func @f(%A: memref<4x10xf32>, %D: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %T = loop.alloc "T" : memref<1xf32>
    loop.for "k" %k = 10 {
      loop.block "T" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%T[0] : memref<1xf32>) origin "T"[i, k] {
        loop.yield %x : f32
      }
    }
    loop.block "D" [i = 4 at %i]
        (%x = %T[0] : memref<1xf32>) -> (%D[i] : memref<4xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T(i, k)
  // expected-error@below {{decompose_reduction: block 'T': 'T' does not live there; lift_alloc first}}
  %init = sched.decompose_reduction %t at %i
