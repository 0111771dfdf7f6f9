func.func @f(%A: memref<4xf32>, %D: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %T = loop.alloc "T" : memref<1xf32>
    loop.block "T" [i = 4 at %i]
        (%x = %A[i] : memref<4xf32>) -> (%T[0] : memref<1xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.for "j" %j = 6 {
      loop.block "D" [i = 4 at %i, j = 6 at %j]
          (%x = %T[0] : memref<1xf32>) -> (%D[i, j] : memref<4x6xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
