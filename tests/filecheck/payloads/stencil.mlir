func.func @f(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}
