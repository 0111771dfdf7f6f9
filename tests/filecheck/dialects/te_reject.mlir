// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{the read of 'A' is out of bounds in dimension 0: index h + 1 is 8 at h=7, the size is 8}}
  %B = te.compute "B" [h = 8] (%a = %A[h + 1] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{axis 'h' occurs twice}}
  %B = te.compute "B" [h = 8, h = 8] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{reduce axis 'k' stands before a spatial axis}}
  %B = te.compute "B" [reduce k = 2, h = 8] combine [add] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{expected 1 combiners for 1 results, got 0}}
  %B = te.compute "B" [h = 8, reduce k = 2] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{unknown combiner 'mean'}}
  %B = te.compute "B" [h = 8, reduce k = 2] combine [mean] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<9xf32> {
  // expected-error@+1 {{the results of 'B' must be tensor<8xf32> after its spatial axes and yielded values}}
  %B = te.compute "B" [h = 8] (%a = %A[h] : tensor<8xf32>) -> tensor<9xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<9xf32>
}
// -----
func.func @f(%A: tensor<8x2xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{the read of 'A' has 2 dimensions but 1 indices}}
  %B = te.compute "B" [h = 8] (%a = %A[h] : tensor<8x2xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{axis 'h' has extent 0; extents are at least 1}}
  %B = te.compute "B" [h = 0] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{unknown axis 'j' (the axes are h)}}
  %B = te.compute "B" [h = 8] (%a = %A[j] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{the right side of mod is not a positive integer}}
  %B = te.compute "B" [h = 8] (%a = %A[h mod 0] : tensor<8xf32>) -> tensor<8xf32> {
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  %B = te.compute "B" [h = 8] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    // expected-error@+1 {{'z' is not an axis of 'B'}}
    %0 = te.index "z" : index
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error@+1 {{'func.call' is not a scalar operation and cannot stand in a body}}
  %B = te.compute "B" [h = 8] (%a = %A[h] : tensor<8xf32>) -> tensor<8xf32> {
    func.call @g() : () -> ()
    te.yield %a : f32
  }
  func.return %B : tensor<8xf32>
}
// -----
// expected-error@+1 {{te.index stands only in the body of a te.compute}}
%0 = te.index "z" : index
