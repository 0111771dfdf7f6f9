func.func @f(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4x10xf32>
  loop.for "h" %h = 4 {
    loop.for "e" %e = 10 {
      loop.block "T" [i = 4 at %h, k = 10 at %e]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%T[i, k] : memref<4x10xf32>) origin "T"[i, k] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %T[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}
