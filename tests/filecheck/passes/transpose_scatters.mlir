// RUN: strata-opt %s -p transpose-scatters | filecheck %s

// Two columns of a matrix become the rows of a tile, which two vectors hold.
// CHECK-LABEL: @dense
func.func @dense(%A: memref<2x4xf32>, %T: memref<4x2xf32>) {
  // CHECK-NOT: vector.scatter
  // CHECK: [[LOW:%.*]] = vector.shuffle %a, %b [0, 4, 1, 5] : vector<4xf32>, vector<4xf32>
  // CHECK-NEXT: [[HIGH:%.*]] = vector.shuffle %a, %b [2, 6, 3, 7] : vector<4xf32>, vector<4xf32>
  // CHECK-NEXT: vector.store [[LOW]], %T[%c0, %c0] : memref<4x2xf32>, vector<4xf32>
  // CHECK-NEXT: [[TWO:%.*]] = arith.constant 2 : index
  // CHECK-NEXT: [[AT:%.*]] = arith.addi %c0, [[TWO]] : index
  // CHECK-NEXT: vector.store [[HIGH]], %T[[[AT]], %c0] : memref<4x2xf32>, vector<4xf32>
  // CHECK-NEXT: func.return
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %apart = arith.constant dense<[0, 2, 4, 6]> : vector<4xindex>
  %all = arith.constant dense<true> : vector<4xi1>
  %a = vector.load %A[%c0, %c0] : memref<2x4xf32>, vector<4xf32>
  vector.scatter %T[%c0, %c0] [%apart], %all, %a : memref<4x2xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  %b = vector.load %A[%c1, %c0] : memref<2x4xf32>, vector<4xf32>
  vector.scatter %T[%c0, %c1] [%apart], %all, %b : memref<4x2xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  func.return
}

// With a gap behind the rows each is a store of its own, and none touches the gap.
// CHECK-LABEL: @gaps
func.func @gaps(%A: memref<2x2xf32>, %T: memref<2x3xf32>, %mask: vector<2xi1>) {
  // CHECK-NOT: vector.scatter
  // CHECK: [[LOW:%.*]] = vector.shuffle %a, %b [0, 2] : vector<2xf32>, vector<2xf32>
  // CHECK-NEXT: [[HIGH:%.*]] = vector.shuffle %a, %b [1, 3] : vector<2xf32>, vector<2xf32>
  // CHECK: [[FIRST:%.*]] = vector.shuffle %mask, %{{.*}} [0, 0] : vector<2xi1>, vector<2xi1>
  // CHECK-NEXT: vector.maskedstore %T[%c0, %c0], [[FIRST]], [[LOW]]
  // CHECK: [[SECOND:%.*]] = vector.shuffle %mask, %{{.*}} [1, 1] : vector<2xi1>, vector<2xi1>
  // CHECK-NEXT: vector.maskedstore %T[%{{.*}}, %c0], [[SECOND]], [[HIGH]]
  // CHECK-NEXT: func.return
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %apart = arith.constant dense<[0, 3]> : vector<2xindex>
  %a = vector.load %A[%c0, %c0] : memref<2x2xf32>, vector<2xf32>
  %b = vector.load %A[%c1, %c0] : memref<2x2xf32>, vector<2xf32>
  vector.scatter %T[%c0, %c0] [%apart], %mask, %a : memref<2x3xf32>, vector<2xindex>, vector<2xi1>, vector<2xf32>
  vector.scatter %T[%c0, %c1] [%apart], %mask, %b : memref<2x3xf32>, vector<2xindex>, vector<2xi1>, vector<2xf32>
  func.return
}
