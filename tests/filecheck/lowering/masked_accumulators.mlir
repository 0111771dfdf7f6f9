// RUN: strata-opt %s -p loop-to-low --split-input-file | filecheck %s
// RUN: strata-opt %s -p loop-to-low,promote-buffers --split-input-file | filecheck %s --check-prefix=CARRIED

// Rows and columns are ragged: no test stands in the reduction's loop, the row that may be missing is read where there
// is one, and what is kept of its sum is decided outside. Both rows read the same vector of B.
// CHECK-LABEL: @ragged
// CHECK: scf.for %i
// CHECK: [[THERE:%.*]] = vector.broadcast %{{.*}} : i1 to vector<4xi1>
// CHECK: [[ROW:%.*]] = arith.minsi %{{.*}}, %c4 : index
// CHECK: scf.for %j
// CHECK: [[LANES:%.*]] = vector.create_mask %{{.*}} : vector<4xi1>
// CHECK: [[BOTH:%.*]] = arith.andi [[THERE]], [[LANES]] : vector<4xi1>
// CHECK: scf.for %k
// CHECK-NEXT: memref.load %A[%{{.*}}, %k]
// CHECK-NEXT: vector.maskedload %B[%k, %{{.*}}], [[LANES]]
// CHECK-NOT: scf.if
// CHECK: vector.maskedload %C[%{{.*}}, %{{.*}}], [[LANES]]
// CHECK: vector.maskedstore %C[%{{.*}}, %{{.*}}], [[LANES]]
// CHECK-NEXT: memref.load %A[[[ROW]], %k]
// CHECK-NEXT: vector.maskedload %B[%k, %{{.*}}], [[LANES]]
// CHECK-NOT: scf.if
// CHECK: vector.maskedload %C[%{{.*}}, %{{.*}}], [[BOTH]]
// CHECK: vector.maskedstore %C[%{{.*}}, %{{.*}}], [[BOTH]]
// CHECK-NEXT: }

// The accumulators are carried through the loop.
// CARRIED-LABEL: @ragged
// CARRIED: vector.maskedload %C
// CARRIED: scf.for %k = %c0 to %c6 step %c1 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<4xf32>, vector<4xf32>) {
// CARRIED-NOT: %C[
// CARRIED: scf.yield %{{.*}}, %{{.*}} : vector<4xf32>, vector<4xf32>
// CARRIED-NEXT: }
// CARRIED-NEXT: vector.maskedstore %C
// CARRIED-NEXT: vector.maskedstore %C
func.func @ragged(%A: memref<5x6xf32>, %B: memref<6x7xf32>, %C: memref<5x7xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "j" %j = 2 {
      loop.for "k" %k = 6 {
        loop.for "u" %u = 2 unrolled {
          loop.for "l" %l = 4 vectorized {
            loop.block "C" [m = 5 at %i * 2 + %u, n = 7 at %j * 4 + %l, reduce k = 6 at %k]
                where (%i * -2 - %u + 4 >= 0, %j * -4 - %l + 6 >= 0) combine [add] accumulate
                (%a = %A[m, k] : memref<5x6xf32>, %b = %B[k, n] : memref<6x7xf32>) -> (%C[m, n] : memref<5x7xf32>) {
              %0 = arith.mulf %a, %b : f32
              loop.yield %0 : f32
            }
          }
        }
      }
    }
  }
  func.return
}

// -----

// A guard on the reduction's own loop is that loop's bound; one that the loop decides with others is tested inside.
// CHECK-LABEL: @triangle
// CHECK: scf.for %k
// CHECK: [[TEST:%.*]] = arith.cmpi sge
// CHECK-NEXT: scf.if [[TEST]] {
// CHECK: vector.store
func.func @triangle(%A: memref<6x8xf32>, %C: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 2 {
    loop.for "k" %k = 6 {
      loop.for "u" %u = 2 unrolled {
        loop.for "l" %l = 8 vectorized {
          loop.block "C" [m = 4 at %i * 2 + %u, n = 8 at %l, reduce k = 6 at %k]
              where (%i * 2 + %u - %k >= 0) combine [add] accumulate
              (%a = %A[k, n] : memref<6x8xf32>) -> (%C[m, n] : memref<4x8xf32>) {
            loop.yield %a : f32
          }
        }
      }
    }
  }
  func.return
}

// -----

// A row that no iteration has is not computed at all.
// CHECK-LABEL: @never
// CHECK: scf.for %k
// CHECK: vector.load %C[%c0, %c0]
// CHECK: vector.store %{{.*}}, %C[%c0, %c0]
// CHECK-NEXT: }
func.func @never(%A: memref<6x8xf32>, %C: memref<1x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 6 {
    loop.for "u" %u = 3 unrolled {
      loop.for "l" %l = 8 vectorized {
        loop.block "C" [m = 1 at %u, n = 8 at %l, reduce k = 6 at %k] where (-%u >= 0) combine [add] accumulate
            (%a = %A[k, n] : memref<6x8xf32>) -> (%C[m, n] : memref<1x8xf32>) {
          loop.yield %a : f32
        }
      }
    }
  }
  func.return
}

// -----

// The accumulator of each lane steps by lanes: its rows stay under their test.
// CHECK-LABEL: @private
// CHECK: scf.for %k
// CHECK: scf.if
// CHECK: vector.scatter %T
// CHECK-NEXT: }
func.func @private(%A: memref<5x6x4xf32>, %D: memref<3x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "j" %j = 4 vectorized {
      %T = loop.alloc "T" : memref<5x4xf32>
      loop.for "k" %k = 6 {
        loop.for "u" %u = 2 unrolled {
          loop.block "T" [i = 5 at %i * 2 + %u, j = 4 at %j, reduce k = 6 at %k] where (%i * -2 - %u + 4 >= 0) combine [add] accumulate
              (%a = %A[i, k, j] : memref<5x6x4xf32>) -> (%T[i, j] : memref<5x4xf32>) {
            loop.yield %a : f32
          }
        }
      }
      loop.block "D" [i = 3 at %i, j = 4 at %j] (%t = %T[i, j] : memref<5x4xf32>) -> (%D[i, j] : memref<3x4xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}

// -----

// A condition that is settled before a read may keep it inside its buffer only together with the row's own: at k = 5,
// which is behind the end of A, it holds in the row that is missing and in no other. There k is clamped.
// CHECK-LABEL: @together
// CHECK: [[THERE:%.*]] = vector.broadcast %{{.*}} : i1 to vector<8xi1>
// CHECK: scf.for %k
// CHECK: scf.if
// CHECK-NEXT: vector.load %A
// CHECK: }
// CHECK: [[INSIDE:%.*]] = arith.minsi %k, %c4 : index
// CHECK: vector.load %A[[[INSIDE]], %c0]
// CHECK: vector.maskedstore %C[%{{.*}}, %c0], [[THERE]]
func.func @together(%A: memref<5x8xf32>, %C: memref<5x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "k" %k = 6 {
      loop.for "u" %u = 2 unrolled {
        loop.for "l" %l = 8 vectorized {
          loop.block "C" [m = 5 at %i * 2 + %u, n = 8 at %l, reduce k = 5 at %k]
              where (%i * -2 - %u + 4 >= 0, %i * 2 + %u - %k >= 0) combine [add] accumulate
              (%a = %A[k, n] : memref<5x8xf32>) -> (%C[m, n] : memref<5x8xf32>) {
            loop.yield %a : f32
          }
        }
      }
    }
  }
  func.return
}

// -----

// Panels of columns are packed, and the last tile has more panels than there are: the lanes of a panel are all inside
// it, so that only the number of the panel is clamped, outside the reduction's loop, and nothing masks the read.
// CHECK-LABEL: @panels
// CHECK: [[PANEL:%.*]] = arith.minsi %{{.*}}, %{{.*}} : index
// CHECK: scf.for %k
// CHECK-NOT: vector.maskedload %B
// CHECK: vector.load %B[[[PANEL]], %k, %{{.*}}]
// CHECK: vector.maskedstore %C
func.func @panels(%A: memref<6xf32>, %B: memref<3x6x4xf32>, %C: memref<11xf32>) attributes {outputs = 1 : i64} {
  loop.for "o" %o = 2 {
    loop.for "p" %p = 2 {
      loop.for "k" %k = 6 {
        loop.for "l" %l = 4 vectorized {
          loop.block "C" [n = 11 at %o * 8 + %p * 4 + %l, reduce k = 6 at %k]
              where (%o * -8 - %p * 4 - %l + 10 >= 0) combine [add] accumulate
              (%a = %A[k] : memref<6xf32>, %b = %B[n floordiv 4, k, n mod 4] : memref<3x6x4xf32>) -> (%C[n] : memref<11xf32>) {
            %0 = arith.mulf %a, %b : f32
            loop.yield %0 : f32
          }
        }
      }
    }
  }
  func.return
}
