// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{argument 0 of @f: dimension 0 is S, at most 9, and its capacity is 8}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 9>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{argument 0 of @f: dimension 0 is S, which may be 0; extents are at least 1}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 0 to 8>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{te.dims has the size 'T', which te.sizes does not declare}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[T, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{te.dims has 1 extents, the type tensor<8x4xf32> has 2}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{size 'S' is from 8 to 1; a range begins at 0 or more, and ends below 2^31}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 8 to 1>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{size 'S' occurs twice}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8, S = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{no S in their ranges satisfy S - 9 >= 0}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8 where (S - 9 >= 0)>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{'mod' cannot name a size}}
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8, mod = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{the read of 'X' is out of bounds in dimension 0: index m is}}
  %B = te.compute "B" [m = 8, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{the read of 'X' is out of bounds in dimension 0: index m + 1 is}}
  %B = te.compute "B" [m = 8 below S, n = 4] (%x = %X[m + 1, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{axis 'm' is S + 1, at most 9, and its capacity is 8}}
  %B = te.compute "B" [m = 8 below S + 1, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8, Q = 1 to 9>} {
  // expected-error@+1 {{axis 'm' is Q - 1, which may be 0; extents are at least 1}}
  %B = te.compute "B" [m = 8 below Q - 1, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{axis 'S' has the name of a size}}
  %B = te.compute "B" [m = 8 below S, S = 4] (%x = %X[m, S] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{unknown axis or size 'T' (the axes are none, the sizes S)}}
  %B = te.compute "B" [m = 8 below T, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
func.func @f(%X: tensor<8x4xf32> {te.dims = #te.dims<[S, 4]>}) -> tensor<8x4xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{not a quasi-affine expression}}
  %B = te.compute "B" [m = 8 below S * S, n = 4] (%x = %X[m, n] : tensor<8x4xf32>) -> tensor<8x4xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8x4xf32>
}
// -----
// expected-error@+1 {{te.sizes is of functions of tensors with one block: other functions take no sizes yet}}
func.func @f(%X: memref<8xf32>) attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  func.return
}
// -----
// expected-error@+1 {{argument 0 of @f: te.dims needs the attribute te.sizes of the function}}
func.func @f(%X: tensor<8xf32> {te.dims = #te.dims<[S]>}) -> tensor<8xf32> {
  func.return %X : tensor<8xf32>
}
// -----
func.func @f(%X: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{axis 'm' is below a size, and the function declares none in te.sizes}}
  %B = te.compute "B" [m = 8 below S] (%x = %X[m] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @g(%X: tensor<8xf32>) -> tensor<8xf32> {
  func.return %X : tensor<8xf32>
}
func.func @f(%X: tensor<8xf32>) -> tensor<8xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{a function with sizes calls no others yet}}
  %B = func.call @g(%X) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%X: tensor<8x8xf32>, %I: tensor<8xi64>) -> tensor<8xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{a size in the index of a table is not supported yet}}
  %B = te.gather "B" [m = 8] %X[%I[m], S - 1] else 0.0 : tensor<8x8xf32>, tensor<8xi64> -> tensor<8xf32>
  func.return %B : tensor<8xf32>
}
// -----
// Equal ops, whose operands have other extents.
func.func @f(%X: tensor<8xf32> {te.dims = #te.dims<[S]>}) -> tensor<8xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 8, T = 1 to 8>} {
  %B = te.compute "B" [m = 8 below S] (%x = %X[m] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8xf32>
}
func.func @g(%X: tensor<8xf32> {te.dims = #te.dims<[T]>}) -> tensor<8xf32>
    attributes {te.sizes = #te.sizes<S = 1 to 8, T = 1 to 8>} {
  // expected-error@+1 {{the read of 'X' is out of bounds in dimension 0: index m is}}
  %B = te.compute "B" [m = 8 below S] (%x = %X[m] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %x : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%X: tensor<8xf32>) -> tensor<8xf32> attributes {te.sizes = #te.sizes<S = 1 to 8>} {
  // expected-error@+1 {{the op is over the sizes #te.sizes<S = 2 to 8>, its function over #te.sizes<S = 1 to 8>}}
  %B = "te.compute"(%X) <{label = "B", axes = [#te.axis<m = 8>], reads = [#te.access<affine_map<(d0) -> (d0)>>],
      sizes = #te.sizes<S = 2 to 8>, combiners = []}> ({
  ^bb0(%x: f32):
    "te.yield"(%x) : (f32) -> ()
  }) : (tensor<8xf32>) -> tensor<8xf32>
  func.return %B : tensor<8xf32>
}
