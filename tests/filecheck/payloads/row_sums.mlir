func.func @f(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}
