func.func @f(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "T" [m = 6 at %m, n = 8 at %n]
          (%x = %A[m, n] : memref<6x8xf32>) -> (%T[m, n] : memref<6x8xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %T[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
