// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{the read of 'A' is out of bounds in dimension 0: index h + 1 is 8 at h=7, the size is 8}}
// PAYLOAD: te_copy s/%A[h]/%A[h + 1]/
// -----
// expected-error@+2 {{axis 'h' occurs twice}}
// PAYLOAD: te_copy s/h = 8/h = 8, h = 8/
// -----
// expected-error@+2 {{reduce axis 'k' stands before a spatial axis}}
// PAYLOAD: te_copy s/[h = 8]/[reduce k = 2, h = 8] combine [add]/
// -----
// expected-error@+2 {{expected 1 combiners for 1 results, got 0}}
// PAYLOAD: te_copy s/h = 8/h = 8, reduce k = 2/
// -----
// expected-error@+2 {{unknown combiner 'mean'}}
// PAYLOAD: te_copy s/[h = 8]/[h = 8, reduce k = 2] combine [mean]/
// -----
// expected-error@+2 {{the results of 'B' must be tensor<8xf32> after its spatial axes and yielded values}}
// PAYLOAD: te_copy s/-> tensor<8xf32>/-> tensor<9xf32>/g s/%B : tensor<8xf32>/%B : tensor<9xf32>/
// -----
// expected-error@+2 {{the read of 'A' has 2 dimensions but 1 indices}}
// PAYLOAD: te_copy s/A: tensor<8xf32>/A: tensor<8x2xf32>/ s/[h] : tensor<8xf32>/[h] : tensor<8x2xf32>/
// -----
// expected-error@+2 {{axis 'h' has extent 0; extents are at least 1}}
// PAYLOAD: te_copy s/h = 8/h = 0/
// -----
// expected-error@+2 {{unknown axis 'j' (the axes are h)}}
// PAYLOAD: te_copy s/%A[h]/%A[j]/
// -----
// expected-error@+2 {{the right side of mod is not a positive integer}}
// PAYLOAD: te_copy s/%A[h]/%A[h mod 0]/
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
// -----
// expected-error@+2 {{a region combines the results of a reduction, and then all of them}}
// PAYLOAD: te_argmax_of_3 s/, reduce k = 8// s/%A[m, k]/%A[m, 0]/
// -----
// expected-error@+2 {{the combiner needs neutral values of types f32, i64}}
// PAYLOAD: te_argmax_of_3 s/-inf : f32/-inf : f64/ s/%v : f32/%v : f64/g s/%x, %y : f32/%x, %y : f64/
// -----
// expected-error@+2 {{the combiner must yield one value a result, of its type}}
// PAYLOAD: te_argmax_of_3 s/%x, %y : f32, i64/%x : f32/
// -----
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  // expected-error@+1 {{'te.index' is not a scalar operation and cannot stand in a body}}
  %V, %I = te.compute "M" [m = 4, reduce k = 8] combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %c = te.index "m" : index
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      te.yield %x, %y : f32, i64
    } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
    %1 = arith.constant 3 : i64
    te.yield %a, %1 : f32, i64
  }
  func.return %I : tensor<4xi64>
}
// -----
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{the combiner takes 1 values to add}}
  %V = te.compute "M" [m = 4, reduce k = 8] combine (%v = 0.0 : f32) with (%w, %x) {
    te.yield %w : f32
  } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %V : tensor<4xf32>
}
// -----
func.func @f(%A: tensor<4xsi8>) -> tensor<4xsi8> {
  // expected-error@+1 {{tensor<4xsi8> does not hold scalars (floats, index, signless or unsigned integers)}}
  %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xsi8>) -> tensor<4xsi8> {
    te.yield %a : si8
  }
  func.return %B : tensor<4xsi8>
}
// -----
func.func @f(%A: tensor<4xui8>) -> tensor<5xui8> {
  // expected-error@+1 {{300 is not a value of type ui8}}
  %B = te.compute "B" [i = 5] (%a = %A[i - 1] where (i - 1 >= 0) else 300 : tensor<4xui8>) -> tensor<5xui8> {
    te.yield %a : i8
  }
  func.return %B : tensor<5xui8>
}
// -----
func.func @f(%A: tensor<4xf32>) -> tensor<4xf64> {
  %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf64> {
    // expected-error@+1 {{f32 is not wider than f64}}
    %0 = arith.truncf %a : f32 to f64
    te.yield %0 : f64
  }
  func.return %B : tensor<4xf64>
}
