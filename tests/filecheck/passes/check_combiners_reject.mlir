// RUN: strata-opt %s -p check-combiners --split-input-file --verify-diagnostics

// Its identity is neutral.
// expected-error@+2 {{the combiner of 'M' cannot be used: its identity is not neutral}}
// PAYLOAD: te_argmax s/-inf/0.0/
// -----

// Ties have a rule.
// expected-error@+2 {{its identity is not neutral: combined with (-inf, 0) it gives (-inf, 9223372036854775807)}}
// PAYLOAD: te_argmax s/%gt, %first/%gt, %gt/
// -----

// Its identity is neutral among ties.
// expected-error@+2 {{its identity is not neutral}}
// PAYLOAD: te_argmax s/%i = 9223372036854775807/%i = 0/
// -----

// The grouping is free.
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{it is not associative: of}}
  %V = te.compute "M" [m = 4, reduce k = 8] combine (%v = 0.0 : f32) with (%w) {
    %0 = arith.addf %v, %w : f32
    %1 = arith.mulf %v, %w : f32
    %2 = arith.mulf %1, %1 : f32
    %3 = arith.addf %0, %2 : f32
    te.yield %3 : f32
  } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %V : tensor<4xf32>
}

// -----

// The order is free.
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{it is not commutative: of}}
  %V = te.compute "M" [m = 4, reduce k = 8] combine (%v = 0.0 : f32) with (%w) {
    %z = arith.constant 0.0 : f32
    %0 = arith.cmpf oeq, %w, %z : f32
    %1 = arith.select %0, %v, %w : f32
    te.yield %1 : f32
  } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32> {
    te.yield %a : f32
  }
  func.return %V : tensor<4xf32>
}
