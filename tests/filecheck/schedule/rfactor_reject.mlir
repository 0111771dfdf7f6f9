// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is a reduction.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  // expected-error@below {{rfactor: block 'D': it is not a reduction with an implicit init}}
  %p = sched.rfactor %d along %i
  transform.yield
}

// -----

// Its init is implicit.
func.func @f(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %i, %k = sched.get_loops %s : !sched.loop, !sched.loop
  %init = sched.decompose_reduction %s at %k
  // expected-error@below {{rfactor: block 'S': it is not a reduction with an implicit init}}
  %p = sched.rfactor %s along %k
  transform.yield
}

// -----

// The loop is around it.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %C = loop.alloc "C" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %C[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %d = sched.get_block %f "D"
  %m, %n = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{rfactor: loop 'm': it is not around block 'C'}}
  %p = sched.rfactor %c along %m
  transform.yield
}

// -----

// The loop binds a reduce axis.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{rfactor: loop 'n': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %n
  transform.yield
}

// -----

// And only that.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %nk = sched.fuse %n, %k
  // expected-error@below {{rfactor: loop 'n_k': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %nk
  transform.yield
}
