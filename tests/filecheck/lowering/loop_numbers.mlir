// RUN: strata-opt %s --split-input-file -p loop-to-low,promote-buffers | filecheck %s

// Loops of the low level carry their numbers in the program; inits that are written out come after all others. A loop
// keeps its number where it is rebuilt with its accumulator in a register.

// CHECK-LABEL: func.func @sum
func.func @sum(%A: memref<4x6x8xf32>, %S: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  // CHECK:       "scf.parallel"
  // CHECK:         %[[SUM:.*]] = scf.for %{{.*}} = {{.*}} iter_args
  // CHECK:         } {loops = array<i64: 2>}
  // CHECK:       }) {loops = array<i64: 0, 1>}
  loop.for "i" %i = 4 parallel {
    loop.for "j" %j = 6 parallel {
      loop.for "k" %k = 8 {
        loop.block "S" [i = 4 at %i, j = 6 at %j, reduce k = 8 at %k] combine [add]
            (%a = %A[i, j, k] : memref<4x6x8xf32>) -> (%S[i, j] : memref<4x6xf32>) {
          loop.yield %a : f32
        }
      }
    }
  }
  func.return
}

// -----

// A loop that is cut, and one inside an unrolled loop, becomes several with one number; lanes have none.

// CHECK-LABEL: func.func @copies
func.func @copies(%A: memref<2x100x4xf32>, %B: memref<2x100x4xf32>) attributes {outputs = 1 : i64} {
  // CHECK-COUNT-2: {loops = array<i64: 1>}
  // CHECK-NOT:     loops
  loop.for "u" %u = 2 unrolled {
    loop.for "i" %i = 100 {
      loop.for "v" %v = 4 vectorized {
        loop.block "B" [u = 2 at %u, i = 100 at %i, v = 4 at %v]
            (%a = %A[u, i, v] : memref<2x100x4xf32>) -> (%B[u, i, v] : memref<2x100x4xf32>) {
          loop.yield %a : f32
        }
      }
    }
  }
  func.return
}

// -----

// The init's own loop has the number after the last.

// CHECK-LABEL: func.func @init
func.func @init(%A: memref<8x6xf32>, %S: memref<6xf32>) attributes {outputs = 1 : i64} {
  // CHECK:       scf.for %j = {{.*}}
  // CHECK:       } {loops = array<i64: 2>}
  // CHECK:       scf.for %k = {{.*}}
  // CHECK:         scf.for %j_1 = {{.*}}
  // CHECK:         } {loops = array<i64: 1>}
  // CHECK:       } {loops = array<i64: 0>}
  loop.for "k" %k = 8 {
    loop.for "j" %j = 6 {
      loop.block "S" [j = 6 at %j, reduce k = 8 at %k] combine [add]
          (%a = %A[k, j] : memref<8x6xf32>) -> (%S[j] : memref<6xf32>) {
        loop.yield %a : f32
      }
    }
  }
  func.return
}
