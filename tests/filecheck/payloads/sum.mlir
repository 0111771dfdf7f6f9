func.func @f(%A: memref<10xf32>, %S: memref<1xf32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 10 {
    loop.block "S" [i = 1 at 0, reduce k = 10 at %k] combine [add]
        (%x = %A[k] : memref<10xf32>) -> (%S[i] : memref<1xf32>) origin "S"[i, k] {
      loop.yield %x : f32
    }
  }
  func.return
}
