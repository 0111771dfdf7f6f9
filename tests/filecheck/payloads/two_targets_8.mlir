func.func @f(%A: memref<10xf32>, %D: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  %U = loop.alloc "U" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>, %U[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      %1 = arith.mulf %x, %x : f32
      loop.yield %0, %1 : f32, f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "D" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %U[i + 2] : memref<10xf32>) -> (%D[i] : memref<8xf32>) origin "D"[i] {
      %0 = arith.addf %x, %y : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
