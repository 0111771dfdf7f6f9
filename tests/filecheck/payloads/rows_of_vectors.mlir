func.func @f(%X: memref<3x75xf32>, %Y: memref<3x75xf32>) attributes {outputs = 1 : i64} {
  loop.for "o" %o = 3 {
    loop.for "i" %i = 8 {
      loop.for "l" %l = 4 vectorized {
        loop.block "Y" [m = 3 at %o, n = 75 at %o * 32 + %i * 4 + %l] where (%o * -32 - %i * 4 - %l + 74 >= 0)
            (%x = %X[m, n] : memref<3x75xf32>) -> (%Y[m, n] : memref<3x75xf32>) {
          loop.yield %x : f32
        }
      }
    }
  }
  func.return
}
