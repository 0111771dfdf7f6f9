func.func @f(%A: memref<4x6xf32>, %D: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "j" %j = 6 {
      loop.block "D" [i = 4 at %i, j = 6 at %j]
          (%x = %A[i, j] : memref<4x6xf32>) -> (%D[i, j] : memref<4x6xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
