func.func @f(%A: memref<4x4xf32>, %D: memref<4x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "j" %j = 3 {
      loop.block "D" [i = 3 at %i, j = 3 at %j]
          (%x = %D[i, j + 1] : memref<4x4xf32>) -> (%D[i + 1, j] : memref<4x4xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
