// RUN: strata-opt %s -p te-to-loop | filecheck %s --check-prefix=LOOP
// RUN: strata-opt %s -p te-to-loop,loop-to-low | filecheck %s

// The index is compared as unsigned, so that negative ones are outside; the load is unconditional.
// LOOP-LABEL: @rows(%T: memref<100x16xf32>, %I: memref<5xi64>, %Y: memref<5x16xf32>) attributes {outputs = 1 : i64}
// CHECK-LABEL: @rows
func.func @rows(%T: tensor<100x16xf32>, %I: tensor<5xi64>) -> tensor<5x16xf32> {
  // LOOP-NEXT: loop.for "i" %i = 5 {
  // LOOP-NEXT: loop.for "d" %d = 16 {
  // LOOP-NEXT: loop.gather "Y" [i = 5 at %i, d = 16 at %d]
  // LOOP-NEXT: %T[%I[i], d] else -1.0 : memref<100x16xf32>, memref<5xi64> -> (%Y[i, d] : memref<5x16xf32>) origin "Y"[i, d]
  // CHECK: %[[OUT:.*]] = arith.constant -1.000000e+00 : f32
  // CHECK: %[[N:.*]] = memref.load %I[%i] : memref<5xi64>
  // CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[N]] : i64 to index
  // CHECK-NEXT: %[[IN:.*]] = arith.cmpi ult, %[[AT]], %c100 : index
  // CHECK-NEXT: %[[ROW:.*]] = arith.select %[[IN]], %[[AT]], %c0 : index
  // CHECK-NEXT: %[[X:.*]] = memref.load %T[%[[ROW]], %d] : memref<100x16xf32>
  // CHECK-NEXT: %[[Y:.*]] = arith.select %[[IN]], %[[X]], %[[OUT]] : f32
  // CHECK-NEXT: memref.store %[[Y]], %Y[%i, %d] : memref<5x16xf32>
  // CHECK-NOT: loop.
  %Y = te.gather "Y" [i = 5, d = 16] %T[%I[i], d] else -1.0 : tensor<100x16xf32>, tensor<5xi64> -> tensor<5x16xf32>
  func.return %Y : tensor<5x16xf32>
}
