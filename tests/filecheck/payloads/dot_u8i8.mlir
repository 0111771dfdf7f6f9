func.func @f(%A: memref<1x8xui8>, %B: memref<2x16x4xi8>, %C: memref<1x16xi32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 1 {
    loop.for "k.0" %k.0 = 2 {
      loop.for "j" %j = 16 tensorized "dot.i32.u8i8x4" {
        loop.for "k.1" %k.1 = 4 tensorized {
          loop.block "C" [i = 1 at %i, j = 16 at %j, reduce k = 8 at %k.0 * 4 + %k.1] combine [add]
              (%a = %A[i, k] : memref<1x8xui8>, %b = %B[k floordiv 4, j, k mod 4] : memref<2x16x4xi8>) -> (%C[i, j] : memref<1x16xi32>) origin "C"[i, j, k] {
            %0 = arith.extui %a : i8 to i32
            %1 = arith.extsi %b : i8 to i32
            %2 = arith.muli %0, %1 : i32
            loop.yield %2 : i32
          }
        }
      }
    }
  }
  func.return
}
