// RUN: strata-opt %s -p loop-to-gpu | filecheck %s

// The counters are set to zero by the first kernel; behind its arrival the last block along y adds up what all wrote.
// CHECK-LABEL: func.func @parts
// CHECK-NEXT: %arrivals = memref.alloc() {arrivals} : memref<3xi32>
// CHECK: "gpu.launch_func"(%0, %1, %2, %3, %4, %5, %arrivals) <{kernel = @parts_kernels::@parts_begin
// CHECK: kernel = @parts_kernels::@parts_C
// CHECK: memref.store %1, %arrivals[%3] : memref<3xi32>
// CHECK: sym_name = "parts_begin"
// CHECK-SAME: arrivals
// CHECK: memref.store %x, %P[%by, %{{[0-9]+}}] : memref<4x6xf32>
// CHECK-NEXT: %last = "grid.arrive"(%arrivals, %bx) <{count = 4 : i64}> : (memref<3xi32>, index) -> i1
// CHECK-NEXT: scf.if %last {
// CHECK: memref.load %P
// CHECK-NOT: gpu.barrier
// CHECK: "gpu.return"
func.func @parts(%X: memref<4x6xf32>, %C: memref<6xf32>) attributes {outputs = 1 : i64} {
  %P = loop.alloc "P" : memref<4x6xf32>
  loop.for "i.0" %i.0 = 3 block_x {
    loop.for "k" %k = 4 block_y {
      loop.for "i.1" %i.1 = 2 thread_x {
        loop.block "P" [k = 4 at %k, i = 6 at %i.0 * 2 + %i.1]
            (%x = %X[k, i] : memref<4x6xf32>) -> (%P[k, i] : memref<4x6xf32>) {
          loop.yield %x : f32
        }
      }
    }
    loop.for "i.1" %i.1_1 = 2 thread_x {
      loop.for "k" %k_1 = 4 {
        loop.block "C" [i = 6 at %i.0 * 2 + %i.1_1, reduce k = 4 at %k_1] combine [add]
            (%p = %P[k, i] : memref<4x6xf32>) -> (%C[i] : memref<6xf32>) {
          loop.yield %p : f32
        }
      }
    }
  }
  func.return
}
