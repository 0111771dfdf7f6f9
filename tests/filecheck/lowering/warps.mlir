// RUN: strata-opt %s -p loop-to-gpu | filecheck %s

// A sum by a warp: each thread reads its own, five exchanges, and the first thread sets the result.
// CHECK-LABEL: "gpu.func"
// CHECK: %[[T:.*]] = "gpu.thread_id"() <{dimension = #gpu<dim x>}>
// CHECK: "gpu.barrier"
// CHECK: %[[V:.*]] = memref.load %S[%{{.*}}]
// CHECK: %[[W:.*]], %{{.*}} = "gpu.shuffle"(%[[V]]
// CHECK: arith.addf %[[V]], %[[W]]
// CHECK-COUNT-4: "gpu.shuffle"
// CHECK: scf.if
// CHECK-NOT: memref.load
// CHECK: memref.store
func.func @sum(%A: memref<4x32xf32>, %B: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 block_x {
    %S = loop.alloc "S" shared : memref<32xf32>
    loop.for "t" %t = 32 thread_x {
      loop.block "S" [i = 4 at %i, t = 32 at %t] (%a = %A[i, t] : memref<4x32xf32>) -> (%S[t] : memref<32xf32>) {
        loop.yield %a : f32
      }
    }
    loop.for "k" %k = 32 tensorized "warp.add.f32" {
      loop.block "B" [i = 4 at %i, reduce k = 32 at %k] combine [add] (%s = %S[k] : memref<32xf32>) -> (%B[i] : memref<4xf32>) {
        loop.yield %s : f32
      }
    }
  }
  func.return
}
