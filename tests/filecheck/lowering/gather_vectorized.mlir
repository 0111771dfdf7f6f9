// RUN: strata-opt %s -p loop-to-low | filecheck %s

// Rows that are contiguous in the vectorized axis are vector loads.
// CHECK-LABEL: @rows
func.func @rows(%T: memref<9x8xf32>, %I: memref<4xi32>, %Y: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %[[IN:.*]] = arith.cmpi ult,
  // CHECK-NEXT: %[[ROW:.*]] = arith.select %[[IN]],
  // CHECK-NEXT: %[[X:.*]] = vector.load %T[%[[ROW]], %c0] : memref<9x8xf32>, vector<8xf32>
  // CHECK-NEXT: %[[WIDE:.*]] = vector.broadcast %[[IN]] : i1 to vector<8xi1>
  // CHECK-NEXT: %[[Y:.*]] = arith.select %[[WIDE]], %[[X]], %{{.*}} : vector<8xi1>, vector<8xf32>
  // CHECK-NEXT: vector.store %[[Y]], %Y[%i, %c0]
  loop.for "i" %i = 4 {
    loop.for "d" %d = 8 vectorized {
      loop.gather "Y" [i = 4 at %i, d = 8 at %d] %T[%I[i], d] else 0.0 : memref<9x8xf32>, memref<4xi32>
          -> (%Y[i, d] : memref<4x8xf32>)
    }
  }
  func.return
}

// A tail is masked: the mask is the block's, apart from what is outside the table.
// CHECK-LABEL: @masked
func.func @masked(%T: memref<9x6xf32>, %I: memref<4xi32>, %Y: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %[[MASK:.*]] = vector.create_mask
  // CHECK: vector.maskedload %T[%{{.*}}, %{{.*}}], %[[MASK]],
  // CHECK: vector.maskedstore %Y[%{{.*}}, %{{.*}}], %[[MASK]],
  loop.for "i" %i = 4 {
    loop.for "d.0" %d.0 = 2 {
      loop.for "d.1" %d.1 = 4 vectorized {
        loop.gather "Y" [i = 4 at %i, d = 6 at %d.0 * 4 + %d.1] where (%d.0 * -4 - %d.1 + 5 >= 0)
            %T[%I[i], d] else 0.0 : memref<9x6xf32>, memref<4xi32> -> (%Y[i, d] : memref<4x6xf32>)
      }
    }
  }
  func.return
}

// Where the index differs from lane to lane, each lane is clamped and loads by itself.
// CHECK-LABEL: @lanes
func.func @lanes(%T: memref<9xf32>, %I: memref<2xi32>, %Y: memref<2xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %[[N:.*]] = vector.load %I[%c0]
  // CHECK-NEXT: %[[A:.*]] = vector.extract %[[N]][0]
  // CHECK: memref.load %T
  // CHECK: %[[B:.*]] = vector.extract %[[N]][1]
  // CHECK: memref.load %T
  // CHECK: vector.store %{{.*}}, %Y[%c0]
  loop.for "i" %i = 2 vectorized {
    loop.gather "Y" [i = 2 at %i] %T[%I[i]] else 0.0 : memref<9xf32>, memref<2xi32> -> (%Y[i] : memref<2xf32>)
  }
  func.return
}
