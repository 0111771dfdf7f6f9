// RUN: strata-opt %s -p te-canonicalize --print-debuginfo | filecheck %s --check-prefix=CANON
// RUN: strata-opt %s -p te-group --print-debuginfo | filecheck %s --check-prefix=GROUP
// RUN: strata-opt %s -p cse --print-debuginfo | filecheck %s --check-prefix=CSE
// RUN: strata-opt %s -p 'te-to-loop,inline{block=G}' --print-debuginfo | filecheck %s --check-prefix=INLINE
// RUN: strata-opt %s -p 'te-to-loop,inline{block=G}' --print-debuginfo | strata-opt - --print-debuginfo | filecheck %s --check-prefix=INLINE
// RUN: strata-opt %s -p cpu --print-debuginfo | filecheck %s --check-prefix=LOW

// What passes merge has the locations of all: equal computes, views, inlined blocks, loops of several blocks.

// CANON: te.compute "product0"
// CANON: } loc(fused["model.py":1:1, "model.py":2:1])
// CANON: te.compute "map0"
// CANON: } loc(fused["layers.0"("model.py":4:1), "model.py":3:1])

// A call has the locations of its group, that with most operations first.
// GROUP: func.call @group_0{{.*}} loc("model.py":1:1)
// GROUP: func.call @group_1{{.*}} loc(fused["model.py":2:1, "model.py":3:1, "layers.0"("model.py":4:1)])

// CSE: te.compute "C"
// CSE: } loc(fused["model.py":1:1, "model.py":2:1])

// INLINE: loop.for "m" %m_2
// INLINE: loop.block "H"
// INLINE: } loc(fused["layers.0"("model.py":4:1), "model.py":3:1])
// INLINE: } loc(fused["layers.0"("model.py":4:1), "model.py":3:1])

// LOW: arith.constant 8 : index loc(fused["layers.0"("model.py":4:1), "model.py":3:1, "model.py":2:1, "model.py":1:1])
// LOW: memref.store {{.*}} loc("model.py":1:1)
// LOW: } {loops = array<i64: 0>} loc("model.py":1:1)
// LOW: memref.store {{.*}} loc("layers.0"("model.py":4:1))
func.func @f(%A: tensor<8x16xf32>, %B: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %C = te.compute "C" [m = 8, n = 8, reduce k = 16] combine [add]
      (%a = %A[m, k] : tensor<8x16xf32>, %b = %B[k, n] : tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  } loc("model.py":1:1)
  %D = te.compute "D" [m = 8, n = 8, reduce k = 16] combine [add]
      (%a = %A[m, k] : tensor<8x16xf32>, %b = %B[k, n] : tensor<16x8xf32>) -> tensor<8x8xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  } loc("model.py":2:1)
  %G = te.compute "G" [m = 8, n = 8] (%d = %D[n, m] : tensor<8x8xf32>) -> tensor<8x8xf32> {
    te.yield %d : f32
  } loc("model.py":3:1)
  %H = te.compute "H" [m = 8, n = 8]
      (%c = %C[m, n] : tensor<8x8xf32>, %g = %G[m, n] : tensor<8x8xf32>) -> tensor<8x8xf32> {
    %0 = arith.subf %c, %g : f32
    te.yield %0 : f32
  } loc("layers.0"("model.py":4:1))
  func.return %H : tensor<8x8xf32>
}
