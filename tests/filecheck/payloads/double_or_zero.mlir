func.func @f(%A: memref<8xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "h" %h = 8 {
    loop.block "T" [i = 8 at %h]
        (%x = %A[i] : memref<8xf32>) -> (%T[i] : memref<8xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] where (-i + 7 >= 0) else 0.0 : memref<8xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
