builtin.module {
  func.func @product(%A: memref<32x16xf32>, %B: memref<16x32xf32>, %C: memref<32x32xf32>) attributes {outputs = 1 : i64} {
    loop.for "m.0" %m.0 = 2 block_y {
      loop.for "n.0" %n.0 = 2 block_x {
        %C.local = loop.alloc "C.local" local : memref<16x16xf32>
        loop.for "m.1" %m.1 = 8 thread_y {
          loop.for "n.1" %n.1 = 8 thread_x {
            loop.for "m.2" %m.2 = 2 unrolled {
              loop.for "n.2" %n.2 = 2 unrolled {
                loop.block "C.init" [m = 32 at %m.0 * 16 + %m.1 * 2 + %m.2, n = 32 at %n.0 * 16 + %n.1 * 2 + %n.2] () -> (%C.local[m mod 16, n mod 16] : memref<16x16xf32>) {
                  %0 = arith.constant 0.000000e+00 : f32
                  loop.yield %0 : f32
                }
              }
            }
          }
        }
        loop.for "k.0" %k.0 = 2 {
          %B.shared = loop.alloc "B.shared" shared : memref<8x16xf32>
          %A.shared = loop.alloc "A.shared" shared : memref<16x8xf32>
          loop.for "ax0_ax1.0" %ax0_ax1.0 = 2 {
            loop.for "ax0_ax1.1" %ax0_ax1.1 = 8 thread_y {
              loop.for "ax0_ax1.2" %ax0_ax1.2 = 8 thread_x {
                loop.block "A.shared" [ax0 = 32 at %m.0 * 16 + %ax0_ax1.0 * 8 + %ax0_ax1.1, ax1 = 16 at %k.0 * 8 + %ax0_ax1.2]
                    (%a = %A[ax0, ax1] : memref<32x16xf32>) -> (%A.shared[ax0 mod 16, ax1 mod 8] : memref<16x8xf32>) {
                  loop.yield %a : f32
                }
              }
            }
          }
          loop.for "ax0_ax1.0" %ax0_ax1.0_1 = 2 {
            loop.for "ax0_ax1.1" %ax0_ax1.1_1 = 8 thread_y {
              loop.for "ax0_ax1.2" %ax0_ax1.2_1 = 8 thread_x {
                loop.block "B.shared" [ax0 = 16 at %k.0 * 8 + %ax0_ax1.0_1 * 4 + %ax0_ax1.1_1 floordiv 2, ax1 = 32 at %n.0 * 16 + %ax0_ax1.2_1 + (%ax0_ax1.1_1 mod 2) * 8]
                    (%b = %B[ax0, ax1] : memref<16x32xf32>) -> (%B.shared[ax0 mod 8, ax1 mod 16] : memref<8x16xf32>) {
                  loop.yield %b : f32
                }
              }
            }
          }
          loop.for "m.1" %m.1_1 = 8 thread_y {
            loop.for "n.1" %n.1_1 = 8 thread_x {
              loop.for "k.1" %k.1 = 8 {
                loop.for "m.2" %m.2_1 = 2 unrolled {
                  loop.for "n.2" %n.2_1 = 2 unrolled {
                    loop.block "C" [m = 32 at %m.0 * 16 + %m.1_1 * 2 + %m.2_1, n = 32 at %n.0 * 16 + %n.1_1 * 2 + %n.2_1, reduce k = 16 at %k.0 * 8 + %k.1] combine [add] accumulate
                        (%a.shared = %A.shared[m mod 16, k mod 8] : memref<16x8xf32>, %b.shared = %B.shared[k mod 8, n mod 16] : memref<8x16xf32>) -> (%C.local[m mod 16, n mod 16] : memref<16x16xf32>) origin "C"[m, n, k] {
                      %0 = arith.mulf %a.shared, %b.shared : f32
                      loop.yield %0 : f32
                    }
                  }
                }
              }
            }
          }
        }
        loop.for "ax0.0" %ax0.0 = 8 thread_y {
          loop.for "ax1.0" %ax1.0 = 8 thread_x {
            loop.for "ax0.1" %ax0.1 = 2 unrolled {
              loop.for "ax1.1" %ax1.1 = 2 unrolled {
                loop.block "C.local" [ax0 = 32 at %m.0 * 16 + %ax0.0 * 2 + %ax0.1, ax1 = 32 at %n.0 * 16 + %ax1.0 * 2 + %ax1.1]
                    (%c.local = %C.local[ax0 mod 16, ax1 mod 16] : memref<16x16xf32>) -> (%C[ax0, ax1] : memref<32x32xf32>) {
                  loop.yield %c.local : f32
                }
              }
            }
          }
        }
      }
    }
    func.return
  }
}