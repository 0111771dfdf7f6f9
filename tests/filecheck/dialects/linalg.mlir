// RUN: strata-opt %s | strata-opt | filecheck %s

// CHECK-LABEL: func.func @named
func.func @named(%A: tensor<4x8xf32>, %B: tensor<8x4xf32>, %C: tensor<4x4xf32>, %D: tensor<4xf32>) {
  // CHECK-NEXT: linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  %0 = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: linalg.matmul {cast = #linalg.type_fn<cast_unsigned>} ins(%A, %B
  %1 = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x4xf32>) outs(%C : tensor<4x4xf32>)
      {cast = #linalg.type_fn<cast_unsigned>}
  // CHECK-NEXT: linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>
  %2 = linalg.contract indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
      affine_map<(d0, d1, d2) -> (d0, d1)>]
      ins(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: linalg.elementwise kind = #linalg.elementwise_kind<exp> indexing_maps = [
  %3 = linalg.elementwise kind=#linalg.elementwise_kind<exp>
      indexing_maps = [affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>]
      ins(%D : tensor<4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: linalg.softmax dimension(1) ins(%C : tensor<4x4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = linalg.softmax dimension(1) ins(%C : tensor<4x4xf32>) outs(%C : tensor<4x4xf32>) -> tensor<4x4xf32>
  // CHECK-NEXT: linalg.transpose ins(%A : tensor<4x8xf32>) outs(%B : tensor<8x4xf32>) permutation = [1, 0]
  %5 = linalg.transpose ins(%A : tensor<4x8xf32>) outs(%B : tensor<8x4xf32>) permutation = [1, 0]
  // CHECK-NEXT: linalg.broadcast ins(%D : tensor<4xf32>) outs(%C : tensor<4x4xf32>) dimensions = [0]
  %6 = linalg.broadcast ins(%D : tensor<4xf32>) outs(%C : tensor<4x4xf32>) dimensions = [0]
  return
}

// CHECK-LABEL: func.func @bodies
func.func @bodies(%A: tensor<4x8xf32>, %D: tensor<4xf32>) {
  // CHECK-NEXT: linalg.reduce ins(%A : tensor<4x8xf32>) outs(%D : tensor<4xf32>) dimensions = [1]
  // CHECK-NEXT: (%[[A:.*]]: f32, %[[OUT:.*]]: f32) {
  // CHECK-NEXT: arith.maximumf %[[OUT]], %[[A]] : f32
  %0 = linalg.reduce { arith.maximumf } ins(%A : tensor<4x8xf32>) outs(%D : tensor<4xf32>) dimensions = [1]
  // CHECK:      linalg.map ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>)
  // CHECK-NEXT: (%{{.*}}: f32, %{{.*}}: f32) {
  // CHECK-NEXT: math.exp
  %1 = linalg.map { math.exp } ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>)
  // A body without an argument for the output is one of MLIR before 22.
  // CHECK:      linalg.map ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>)
  // CHECK-NEXT: (%a: f32, %{{.*}}: f32) {
  %2 = linalg.map ins(%A : tensor<4x8xf32>) outs(%A : tensor<4x8xf32>) (%a: f32) {
    linalg.yield %a : f32
  }
  // CHECK:      %[[B:.*]], %{{.*}} = linalg.generic {indexing_maps = [
  // CHECK-SAME: iterator_types = ["parallel", "reduction"]} ins(%A : tensor<4x8xf32>)
  // CHECK-NEXT: ^{{.*}}(%a_1: f32, %x: f32, %y: f32):
  // CHECK-NEXT: linalg.index 1 : index
  // CHECK:      } -> (tensor<4xf32>, tensor<4xf32>)
  %3:2 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>,
      affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "reduction"]}
      ins(%A : tensor<4x8xf32>) outs(%D, %D : tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %x: f32, %y: f32):
    %i = linalg.index 1 : index
    linalg.yield %x, %y : f32, f32
  } -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: func.func @packed
func.func @packed(%A: tensor<7x4xf32>, %B: tensor<2x2x4x2xf32>, %p: f32, %n: index) {
  // CHECK-NEXT: linalg.pack %A padding_value(%p : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 2] into %B : tensor<7x4xf32> -> tensor<2x2x4x2xf32>
  %0 = linalg.pack %A padding_value(%p : f32) outer_dims_perm = [1, 0] inner_dims_pos = [0, 1] inner_tiles = [4, 2]
      into %B : tensor<7x4xf32> -> tensor<2x2x4x2xf32>
  // CHECK-NEXT: linalg.unpack %B inner_dims_pos = [0, 1] inner_tiles = [%n, 2] into %A : tensor<2x2x4x2xf32> -> tensor<7x4xf32>
  %1 = linalg.unpack %B inner_dims_pos = [0, 1] inner_tiles = [%n, 2] into %A : tensor<2x2x4x2xf32> -> tensor<7x4xf32>
  return
}

// CHECK-LABEL: func.func @flags
func.func @flags(%A: tensor<4x8xf32>, %B: tensor<4xf32>) {
  // CHECK:      arith.addf %{{.*}}, %{{.*}} fastmath<fast> : f32
  %0 = linalg.reduce { arith.addf {fastmath = #arith.fastmath<fast>} } ins(%A : tensor<4x8xf32>) outs(%B : tensor<4xf32>) dimensions = [1]
  return
}
