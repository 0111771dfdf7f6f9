// RUN: strata-opt %s -p convert-te-to-linalg --split-input-file | filecheck %s

// CHECK-LABEL: func.func @padded_sum
// A read under a condition is in the body; the extent of a reduce axis that no input has alone is that of an empty one.
func.func @padded_sum(%X: tensor<8xui8>) -> tensor<8xui8> {
  // CHECK-SAME: (%X: tensor<8xi8>) -> tensor<8xi8>
  // CHECK:      %[[ONE:.*]] = arith.constant 0 : i8
  // CHECK-NEXT: %[[INIT:.*]] = linalg.fill ins(%[[ONE]] : i8)
  // CHECK-NEXT: %[[K:.*]] = tensor.empty() : tensor<3xf32>
  // CHECK-NEXT: %Y = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>],
  // CHECK-SAME:   iterator_types = ["parallel", "reduction"]} ins(%[[K]] : tensor<3xf32>) outs(%[[INIT]] : tensor<8xi8>) {
  // CHECK:        affine.apply affine_map<(d0, d1) -> (((d0 + d1) + -1))>
  // CHECK:        %[[HOLDS:.*]] = arith.andi
  // CHECK:        %[[AT:.*]] = arith.select %[[HOLDS]], %{{.*}}, %{{.*}} : index
  // CHECK-NEXT:   %[[X:.*]] = tensor.extract %X[%[[AT]]] : tensor<8xi8>
  // CHECK:        arith.select %[[HOLDS]], %[[X]], %{{.*}} : i8
  // CHECK:        arith.maxui
  %Y = te.compute "Y" [i = 8, reduce k = 3] combine [max]
      (%x = %X[i + k - 1] where (i + k - 1 >= 0, i + k <= 8) else 7 : tensor<8xui8>) -> tensor<8xui8> {
    te.yield %x : i8
  }
  func.return %Y : tensor<8xui8>
}

// -----

// CHECK-LABEL: func.func @leading
// linalg takes the extent of an axis from the tensors that it indexes: a larger one is cut.
func.func @leading(%A: tensor<9x8xf32>) -> tensor<4x8xf32> {
  // CHECK:      %[[CUT:.*]] = tensor.extract_slice %A[0, 0] [4, 8] [1, 1] : tensor<9x8xf32> to tensor<4x8xf32>
  // CHECK:      linalg.generic {{.*}} ins(%[[CUT]] : tensor<4x8xf32>)
  %B = te.compute "B" [i = 4, j = 8] (%a = %A[i, j] : tensor<9x8xf32>) -> tensor<4x8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<4x8xf32>
}

// -----

// CHECK-LABEL: func.func @gathered
func.func @gathered(%T: tensor<100x16xf32>, %I: tensor<5xui8>) -> tensor<5x16xf32> {
  // CHECK:      ^{{.*}}(%[[I:.*]]: i8, %{{.*}}: f32):
  // CHECK:      %[[WIDE:.*]] = arith.extui %[[I]] : i8 to i64
  // CHECK-NEXT: %[[AT:.*]] = arith.index_cast %[[WIDE]] : i64 to index
  // CHECK:      arith.cmpi sge, %[[AT]]
  // CHECK:      arith.cmpi slt, %[[AT]]
  // CHECK:      tensor.extract %T
  %Y = te.gather "Y" [i = 5, d = 16] %T[%I[i], d] else 0.0 : tensor<100x16xf32>, tensor<5xui8> -> tensor<5x16xf32>
  func.return %Y : tensor<5x16xf32>
}

// -----

// CHECK-LABEL: func.func private @group
func.func private @group(%A: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: %[[C:.*]] = arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>
  %c = te.constant dense<[1.0, 2.0]> : tensor<2xf32>
  %B = te.compute "B" [i = 2] (%a = %A[i] : tensor<2xf32>, %b = %c[i] : tensor<2xf32>) -> tensor<2xf32> {
    %0 = arith.addf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %B : tensor<2xf32>
}
// CHECK-LABEL: func.func @main
func.func @main(%A: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: func.call @group(%A) : (tensor<2xf32>) -> tensor<2xf32>
  %B = func.call @group(%A) : (tensor<2xf32>) -> tensor<2xf32>
  func.return %B : tensor<2xf32>
}
