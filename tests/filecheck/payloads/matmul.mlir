func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}
