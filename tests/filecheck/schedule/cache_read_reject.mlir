// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
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
  // expected-error@below {{cache_read: block 'C': it does not read 'C'}}
  %copy = sched.cache_read %c "C" in "shared"
  transform.yield
}

// -----

// And does not write it.
func.func @f(%A: memref<4x4xf32>, %D: memref<4x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "j" %j = 3 {
      loop.block "D" [i = 3 at %i, j = 3 at %j]
          (%x = %D[i, j + 1] : memref<4x4xf32>) -> (%D[i + 1, j] : memref<4x4xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  // expected-error@below {{cache_read: block 'D': it writes 'D' as well}}
  %copy = sched.cache_read %d "D" in "shared"
  transform.yield
}
