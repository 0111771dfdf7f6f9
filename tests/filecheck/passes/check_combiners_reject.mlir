// RUN: strata-opt %s -p check-combiners --split-input-file --verify-diagnostics

// Its identity is neutral.
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  // expected-error@+1 {{the combiner of 'M' cannot be used: its identity is not neutral}}
  %V, %I = te.compute "M" [m = 4, reduce k = 8] combine (%v = 0.0 : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      te.yield %x, %y : f32, i64
    } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
    %0 = te.index "k" : index
    %1 = arith.index_cast %0 : index to i64
    te.yield %a, %1 : f32, i64
  }
  func.return %I : tensor<4xi64>
}
// -----

// Ties have a rule.
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  // expected-error@+1 {{its identity is not neutral: combined with (-inf, 0) it gives (-inf, 9223372036854775807)}}
  %V, %I = te.compute "M" [m = 4, reduce k = 8] combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %gt : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      te.yield %x, %y : f32, i64
    } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
    %0 = te.index "k" : index
    %1 = arith.index_cast %0 : index to i64
    te.yield %a, %1 : f32, i64
  }
  func.return %I : tensor<4xi64>
}
// -----

// Its identity is neutral among ties.
func.func @f(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  // expected-error@+1 {{its identity is not neutral}}
  %V, %I = te.compute "M" [m = 4, reduce k = 8] combine (%v = -inf : f32, %i = 0 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      te.yield %x, %y : f32, i64
    } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
    %0 = te.index "k" : index
    %1 = arith.index_cast %0 : index to i64
    te.yield %a, %1 : f32, i64
  }
  func.return %I : tensor<4xi64>
}
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
