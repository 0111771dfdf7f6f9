// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loop has no kind yet.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  sched.unroll %t
  // expected-error@below {{trim: loop 't': it is unrolled already, not serial}}
  sched.trim %t

// -----

// What the loop writes lives in the iteration of the loops around.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %M = loop.alloc "M" : memref<8xf32>
  loop.for "i" %i = 4 {
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  // expected-error@below {{trim: block 'M': it writes 'M', which lives longer than the loops around}}
  sched.trim %t

// -----

// All reads have one index.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>, %n = %M[j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      %1 = arith.addf %m, %n : f32
      loop.yield %1 : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  // expected-error@below {{trim: loop 't': its results are read at several indices}}
  sched.trim %t

// -----

// The index is that of the loops around.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.for "e" %e = 8 {
      loop.block "Y" [j = 4 at %i, e = 8 at %e] (%m = %M[e] : memref<8xf32>) -> (%Y[j, e] : memref<4x8xf32>) origin "Y"[j, e] {
        loop.yield %m : f32
      }
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  // expected-error@below {{trim: loop 't': the index at which its results are read depends on other loops than those around}}
  sched.trim %t

// -----

// Each result is at the iteration that computes it.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[8 - t] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[7 - t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  // expected-error@below {{trim: block 'M': block 'Y' reads 'M' at no index that the loop gives}}
  sched.trim %t

// -----

// Somebody reads it.
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %A[j, 0] : memref<4x8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  // expected-error@below {{trim: loop 't': no block outside it reads its results}}
  sched.trim %t
