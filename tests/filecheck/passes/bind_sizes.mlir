// RUN: strata-opt %s -p 'bind-sizes{values="S=3, pos=2"}' | filecheck %s
// RUN: strata-opt %s -p 'bind-sizes{values="S=3, pos=2"},te-to-loop' | filecheck %s --check-prefix LOOP

// CHECK-LABEL: @f(%X: tensor<3xf32>, %K: tensor<8xf32>) -> tensor<4xf32> {
// LOOP-LABEL: @f(%X: memref<3xf32>, %K: memref<8xf32>, %B: memref<4xf32>)
func.func @f(%X: tensor<5xf32> {te.dims = #te.dims<[S]>}, %K: tensor<8xf32>) -> tensor<6xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 5, pos = 0 to 3>} {
  // CHECK-NEXT: te.compute "B" [m = 4]
  // CHECK-NEXT: (%x = %X[m] where (-m + 2 >= 0) else 0.0 : tensor<3xf32>, %k = %K[m floordiv 2 + 2] : tensor<8xf32>) -> tensor<4xf32>
  %B = te.compute "B" [m = 6 below S + 1] (%x = %X[m] where (S - m - 1 >= 0) else 0.0 : tensor<5xf32>,
      %k = %K[m floordiv 2 + pos] : tensor<8xf32>) -> tensor<6xf32> {
    // CHECK-NEXT: arith.constant 3 : index
    %0 = te.index "S" : index
    %1 = arith.index_cast %0 : index to i64
    %2 = arith.sitofp %1 : i64 to f32
    %3 = arith.mulf %x, %2 : f32
    %4 = arith.addf %3, %k : f32
    te.yield %4 : f32
  }
  func.return %B : tensor<6xf32>
}
