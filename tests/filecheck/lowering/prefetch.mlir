// RUN: strata-opt %s -p loop-to-low --split-input-file | filecheck %s

// A row of 33 elements lies in three lines of 16, wherever it starts.
// CHECK-LABEL: @rows
func.func @rows(%A: memref<8x33xf32>, %B: memref<8x33xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %i 
  // CHECK-NEXT: [[NEXT:%.*]] = arith.addi %i, %{{.*}} : index
  // CHECK-NEXT: memref.prefetch %A[[[NEXT]], %c0], read, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: memref.prefetch %A[[[NEXT]], %c16], read, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: memref.prefetch %A[[[NEXT]], %c32], read, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: memref.prefetch %B[[[NEXT]], %c0], write, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: memref.prefetch %B[[[NEXT]], %c16], write, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: memref.prefetch %B[[[NEXT]], %c32], write, locality<3>, data : memref<8x33xf32>
  // CHECK-NEXT: scf.for %j
  // CHECK-NOT: memref.prefetch
  loop.for "i" %i = 8 {
    loop.for "j" %j = 33 {
      loop.block "B" [i = 8 at %i, j = 33 at %j] (%a = %A[i, j] : memref<8x33xf32>) -> (%B[i, j] : memref<8x33xf32>) {
        loop.yield %a : f32
      }
    }
  } attributes {prefetch = {A = 2 : i64, B = 2 : i64}}
  func.return
}

// -----

// The next panel of an argument lies in up to 17 lines: three in each of the eight iterations,
// the last of them the first of the next.
// CHECK-LABEL: @shares
func.func @shares(%A: memref<64x16xf32>, %C: memref<8x16xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %k
  // CHECK-NEXT: [[START:%.*]] = arith.muli %k, %c16 : index
  // CHECK-NEXT: [[NEXT:%.*]] = arith.addi [[START]], %c16 : index
  // CHECK: scf.for %i_1
  // CHECK-NEXT: [[LOW:%.*]] = arith.muli %i_1, %c2 : index
  // CHECK-NEXT: [[FAR:%.*]] = arith.muli [[LOW]], %c16 : index
  // CHECK-NEXT: [[AT:%.*]] = arith.addi %c0, [[FAR]] : index
  // CHECK-NEXT: memref.prefetch %A[[[NEXT]], [[AT]]], read, locality<2>, data : memref<64x16xf32>
  // CHECK-NEXT: [[LINE:%.*]] = arith.addi [[LOW]], %c1 : index
  // CHECK: memref.prefetch %A
  // CHECK-NEXT: [[LINE:%.*]] = arith.addi [[LOW]], %c2 : index
  // CHECK: memref.prefetch %A
  // CHECK: scf.for %r
  // CHECK-NOT: memref.prefetch
  loop.for "k" %k = 4 {
    loop.for "i" %i = 8 {
      loop.for "r" %r = 16 {
        loop.for "j" %j = 16 vectorized {
          loop.block "C" [i = 8 at %i, j = 16 at %j, reduce k = 64 at %k * 16 + %r] combine [add]
              (%a = %A[k, j] : memref<64x16xf32>) -> (%C[i, j] : memref<8x16xf32>) {
            loop.yield %a : f32
          }
        }
      }
    } attributes {prefetch = {A = [1 : i64, "k"]}}
  }
  func.return
}

// -----

// More lines than stand one behind the other are a loop: seventeen eighths of 129 in each of 8 iterations.
// CHECK-LABEL: @many
func.func @many(%A: memref<64x128xf32>, %C: memref<8x128xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %k
  // CHECK: scf.for %i_1
  // CHECK-NEXT: [[LOW:%.*]] = arith.muli %i_1, %c16 : index
  // CHECK-NEXT: [[HIGH:%.*]] = arith.addi [[LOW]], %c17 : index
  // CHECK-NEXT: scf.for [[LINE:%.*]] = [[LOW]] to [[HIGH]] step %c1
  // CHECK-NEXT: [[FAR:%.*]] = arith.muli [[LINE]], %c16 : index
  // CHECK-NEXT: [[AT:%.*]] = arith.addi %c0, [[FAR]] : index
  // CHECK-NEXT: memref.prefetch %A[{{%.*}}, [[AT]]], read, locality<2>, data : memref<64x128xf32>
  // CHECK: scf.for %r
  // CHECK-NOT: memref.prefetch
  loop.for "k" %k = 4 {
    loop.for "i" %i = 8 {
      loop.for "r" %r = 16 {
        loop.for "j" %j = 128 {
          loop.block "C" [i = 8 at %i, j = 128 at %j, reduce k = 64 at %k * 16 + %r] combine [add]
              (%a = %A[k, j] : memref<64x128xf32>) -> (%C[i, j] : memref<8x128xf32>) {
            loop.yield %a : f32
          }
        }
      }
    } attributes {prefetch = {A = [1 : i64, "k"]}}
  }
  func.return
}

// -----

// The loops between count: 17 lines over 8 x 16 iterations are one in each, the same one in seven or eight of them.
// CHECK-LABEL: @between
func.func @between(%A: memref<64x16xf32>, %C: memref<8x16xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %i_1
  // CHECK-NEXT: [[ROW:%.*]] = arith.muli %i_1, %c2 : index
  // CHECK-NEXT: [[REST:%.*]] = arith.muli %i_1, %c16 : index
  // CHECK-NEXT: scf.for %r
  // CHECK-NEXT: [[STEP:%.*]] = arith.muli %r, %c17 : index
  // CHECK-NEXT: [[TURN:%.*]] = arith.addi [[REST]], [[STEP]] : index
  // CHECK-NEXT: [[SHARE:%.*]] = arith.divui [[TURN]], %c128 : index
  // CHECK-NEXT: [[LINE:%.*]] = arith.addi [[ROW]], [[SHARE]] : index
  // CHECK-NEXT: [[FAR:%.*]] = arith.muli [[LINE]], %c16 : index
  // CHECK-NEXT: [[AT:%.*]] = arith.addi %c0, [[FAR]] : index
  // CHECK-NEXT: memref.prefetch %A[{{%.*}}, [[AT]]], read, locality<2>, data : memref<64x16xf32>
  // CHECK-NOT: memref.prefetch
  loop.for "k" %k = 4 {
    loop.for "i" %i = 8 {
      loop.for "r" %r = 16 {
        loop.for "j" %j = 16 vectorized {
          loop.block "C" [i = 8 at %i, j = 16 at %j, reduce k = 64 at %k * 16 + %r] combine [add]
              (%a = %A[k, j] : memref<64x16xf32>) -> (%C[i, j] : memref<8x16xf32>) {
            loop.yield %a : f32
          }
        }
      } attributes {prefetch = {A = [1 : i64, "k"]}}
    }
  }
  func.return
}

// -----

// A temporary that starts at a line and whose rows do needs no line more.
// CHECK-LABEL: @aligned
func.func @aligned(%B: memref<4x16xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %i
  // CHECK-NEXT: arith.addi
  // CHECK-NEXT: memref.prefetch %T
  // CHECK-NOT: memref.prefetch
  %T = loop.alloc "T" : memref<4x16xf32>
  loop.for "i" %i = 4 {
    loop.for "j" %j = 16 vectorized {
      loop.block "B" [i = 4 at %i, j = 16 at %j] (%t = %T[i, j] : memref<4x16xf32>) -> (%B[i, j] : memref<4x16xf32>) {
        loop.yield %t : f32
      }
    }
  } attributes {prefetch = {T = 1 : i64}}
  func.return
}

// -----

// The lanes of a vectorized loop around are asked for together; a column is read backwards; a scalar is one element.
// CHECK-LABEL: @lanes
func.func @lanes(%A: memref<9x4xf32>, %S: memref<f32>, %B: memref<9x4xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %i = %c0 to %c9 step %c1 {
  // CHECK: memref.prefetch %A[%{{.*}}, %c0], read, locality<3>, data : memref<9x4xf32>
  // CHECK-NEXT: memref.prefetch %A[%{{.*}}, %c16], read, locality<3>, data : memref<9x4xf32>
  // CHECK-NEXT: memref.prefetch %S[], read, locality<3>, data : memref<f32>
  // CHECK-NOT: memref.prefetch
  loop.for "j" %j = 4 vectorized {
    loop.for "i" %i = 9 {
      loop.block "B" [i = 9 at %i, j = 4 at %j]
          (%a = %A[8 - i, 3 - j] : memref<9x4xf32>, %s = %S[] : memref<f32>) -> (%B[i, j] : memref<9x4xf32>) {
        %0 = arith.addf %a, %s : f32
        loop.yield %0 : f32
      }
    } attributes {prefetch = {A = 1 : i64, S = 1 : i64}}
  }
  func.return
}

// -----

// What an unrolled loop touches next is known; a temporary of one iteration is not there in the next.
// CHECK-LABEL: @unrolled
func.func @unrolled(%A: memref<2x3xf32>, %B: memref<2x3xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %j
  // CHECK: memref.prefetch %A[%c1, %{{.*}}]
  // CHECK-NOT: memref.prefetch
  // CHECK: scf.for %j_1
  // CHECK: memref.prefetch %A[%c2, %{{.*}}]
  // CHECK-NOT: memref.prefetch
  loop.for "i" %i = 2 unrolled {
    loop.for "j" %j = 3 {
      %T = loop.alloc "T" : memref<2xf32>
      loop.block "T" [i = 2 at %i, j = 3 at %j] (%a = %A[i, j] : memref<2x3xf32>) -> (%T[i] : memref<2xf32>) {
        loop.yield %a : f32
      }
      loop.block "B" [i = 2 at %i, j = 3 at %j] (%t = %T[i] : memref<2xf32>) -> (%B[i, j] : memref<2x3xf32>) {
        loop.yield %t : f32
      }
    } attributes {prefetch = {A = [1 : i64, "i"], T = 1 : i64}}
  }
  func.return
}
