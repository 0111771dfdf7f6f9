func.func @f(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 12 {
    loop.block "D" [i = 12 at %i]
        (%x = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
