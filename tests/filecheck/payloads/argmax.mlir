func.func @f(%A: memref<4x8xf32>, %V: memref<4xf32>, %I: memref<4xi64>) attributes {outputs = 2 : i64} {
  loop.for "m" %m = 4 {
    loop.for "k" %k = 8 {
      loop.block "M" [m = 4 at %m, reduce k = 8 at %k]
    combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      loop.yield %x, %y : f32, i64
    } (%a = %A[m, k] : memref<4x8xf32>) -> (%V[m] : memref<4xf32>, %I[m] : memref<4xi64>) origin "M"[m, k] {
        %0 = loop.index "k" : index
        %1 = arith.index_cast %0 : index to i64
        loop.yield %a, %1 : f32, i64
      }
    }
  }
  func.return
}
