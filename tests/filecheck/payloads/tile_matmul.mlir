func.func @f(%A: memref<16x32xbf16>, %B: memref<16x16x2xbf16>, %C: memref<16x16xf32>) attributes {outputs = 1 : i64} {
  %C.fragment = loop.alloc "C.fragment" fragment : memref<16x16xf32>
  loop.for "i" %i = 16 tensorized "tile.zero.f32" {
    loop.for "j" %j = 16 tensorized {
      loop.block "C.init" [i = 16 at %i, j = 16 at %j] () -> (%C.fragment[i, j] : memref<16x16xf32>) {
        %0 = arith.constant 0.000000e+00 : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i_1 = 16 tensorized "tile.f32.bf16" {
    loop.for "j" %j_1 = 16 tensorized {
      loop.for "k.0" %k.0 = 16 tensorized {
        loop.for "k.1" %k.1 = 2 tensorized {
          loop.block "C" [i = 16 at %i_1, j = 16 at %j_1, reduce k = 32 at %k.0 * 2 + %k.1] combine [add] accumulate
              (%a = %A[i, k] : memref<16x32xbf16>, %b = %B[k floordiv 2, j, k mod 2] : memref<16x16x2xbf16>) -> (%C.fragment[i, j] : memref<16x16xf32>) origin "C"[i, j, k] {
            %0 = arith.extf %a : bf16 to f32
            %1 = arith.extf %b : bf16 to f32
            %2 = arith.mulf %0, %1 : f32
            loop.yield %2 : f32
          }
        }
      }
    }
  }
  loop.for "ax0" %ax0 = 16 tensorized "tile.store.f32" {
    loop.for "ax1" %ax1 = 16 tensorized {
      loop.block "C.fragment" [ax0 = 16 at %ax0, ax1 = 16 at %ax1]
          (%c.fragment = %C.fragment[ax0, ax1] : memref<16x16xf32>) -> (%C[ax0, ax1] : memref<16x16xf32>) {
        loop.yield %c.fragment : f32
      }
    }
  }
  func.return
}
