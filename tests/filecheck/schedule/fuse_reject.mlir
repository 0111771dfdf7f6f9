// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loops are next to each other.
// PAYLOAD: matmul
// PAYLOAD: loops_C_mnk
  // expected-error@below {{fuse: loop 'k': it is not the only content of loop 'm', so they are not perfectly nested}}
  %x = sched.fuse %m, %k

// -----

// They are named outermost first.
// PAYLOAD: matmul
// PAYLOAD: loops_C_mnk
  // expected-error@below {{fuse: loop 'm': it is not the only content of loop 'n', so they are not perfectly nested}}
  %x = sched.fuse %n, %m

// -----

// Each is the only content of the one before.
func.func @f(%A: memref<4xf32>, %D: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %T = loop.alloc "T" : memref<1xf32>
    loop.block "T" [i = 4 at %i]
        (%x = %A[i] : memref<4xf32>) -> (%T[0] : memref<1xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.for "j" %j = 6 {
      loop.block "D" [i = 4 at %i, j = 6 at %j]
          (%x = %T[0] : memref<1xf32>) -> (%D[i, j] : memref<4x6xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: loops_D_ij
  // expected-error@below {{fuse: loop 'j': it is not the only content of loop 'i', so they are not perfectly nested}}
  %x = sched.fuse %i, %j

// -----

// All are serial.
func.func @f(%A: memref<4x6xf32>, %D: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "j" %j = 6 vectorized {
      loop.block "D" [i = 4 at %i, j = 6 at %j]
          (%x = %A[i, j] : memref<4x6xf32>) -> (%D[i, j] : memref<4x6xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: loops_D_ij
  // expected-error@below {{fuse: loop 'j': it is vectorized already, not serial}}
  %x = sched.fuse %i, %j
