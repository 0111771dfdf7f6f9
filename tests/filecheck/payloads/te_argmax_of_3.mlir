func.func @f(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  %V, %I = te.compute "M" [m = 4, reduce k = 8] combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
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
