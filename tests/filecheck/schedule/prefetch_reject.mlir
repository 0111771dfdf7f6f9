// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The body touches the buffer.
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
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{prefetch: loop 'k': its body does not touch 'D'}}
  sched.prefetch %k "D" ahead 2
  transform.yield
}

// -----

// The loop that asks is inside the one that it asks for.
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
  // expected-error@below {{prefetch: loop 'm': it is not inside loop 'k'}}
  sched.prefetch %k "B" ahead 1 over %m
  transform.yield
}

// -----

// A loop is not inside itself.
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
  // expected-error@below {{prefetch: loop 'k': it is not inside loop 'k'}}
  sched.prefetch %k "B" ahead 1 over %k
  transform.yield
}

// -----

// The buffer is there in the next iteration too.
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
  %pack = sched.cache_read %c "B" in "local"
  sched.compute_at %pack at %m
  // expected-error@below {{prefetch: loop 'm': 'B.local' lives in one iteration of it; lift_alloc first}}
  sched.prefetch %m "B.local" ahead 1 over %k
  transform.yield
}

// -----

// The lanes of a vector run at once.
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
  sched.vectorize %n
  // expected-error@below {{prefetch: loop 'n': it is vectorized: no iteration is later}}
  sched.prefetch %n "B" ahead 1 over %k
  transform.yield
}
