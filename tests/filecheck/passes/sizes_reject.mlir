// RUN: not strata-opt %s -p te-to-loop 2>&1 | filecheck %s
// RUN: not strata-opt %s -p te-canonicalize 2>&1 | filecheck %s
// RUN: not strata-opt %s -p convert-te-to-linalg 2>&1 | filecheck %s

// CHECK: error: @f has sizes (S): these are not hashed, scheduled or built yet; te.bound and the pass bind-sizes give them values
func.func @f(%X: tensor<8xf32> {te.dims = #te.dims<[S]>}) -> tensor<8xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S] (%x = %X[m] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8xf32>
}
