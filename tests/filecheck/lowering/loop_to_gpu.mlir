// RUN: strata-opt %s -p loop-to-gpu | filecheck %s

// CHECK: builtin.module attributes {gpu.container_module}
// CHECK-LABEL: func.func @rows(%X: memref<4x32xf32>, %Y: memref<4x32xf32>) attributes {outputs = 1 : i64} {
// CHECK-NEXT: %0 = arith.constant 4 : index
// CHECK: %3 = arith.constant 32 : index
// CHECK: "gpu.launch_func"(%0, %1, %2, %3, %4, %5, %X, %Y) <{kernel = @rows_kernels::@rows_Y
// CHECK-NEXT: func.return
// CHECK: "gpu.module"() <{sym_name = "rows_kernels"}> ({
// CHECK-NEXT: "gpu.func"() <{function_type = (memref<4x32xf32>, memref<4x32xf32>) -> (), kernel}> ({
// CHECK: %bx = "gpu.block_id"() <{dimension = #gpu<dim x>}>
// CHECK-NEXT: %tx = "gpu.thread_id"() <{dimension = #gpu<dim x>}>

// A buffer that the block shares, a barrier before another thread reads it, and no iteration for the other half.
func.func @rows(%X: memref<4x32xf32>, %Y: memref<4x32xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 block_x {
    // CHECK: %T = memref.alloca() : memref<1x32xf32, 3 : i64>
    %T = loop.alloc "T" shared : memref<1x32xf32>
    // CHECK-NEXT: %x = memref.load %X[%bx, %tx]
    // CHECK-NEXT: memref.store %x, %T[%c0, %tx]
    loop.for "j" %j = 32 thread_x {
      loop.block "T" [i = 4 at %i, j = 32 at %j]
          (%x = %X[i, j] : memref<4x32xf32>) -> (%T[0, j] : memref<1x32xf32>) {
        loop.yield %x : f32
      }
    }
    // CHECK-NEXT: "gpu.barrier"()
    // CHECK: scf.if
    // CHECK: memref.load %T
    // CHECK: memref.store
    loop.for "j" %j_1 = 16 thread_x {
      loop.block "Y" [i = 4 at %i, j = 16 at %j_1]
          (%t = %T[0, 31 - j] : memref<1x32xf32>) -> (%Y[i, j] : memref<4x32xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}
