// RUN: strata-opt %s --print-debuginfo | filecheck %s
// RUN: strata-opt %s -p te-to-loop --print-debuginfo | strata-opt - --print-debuginfo | filecheck %s --check-prefix=LOOP
// RUN: strata-opt %s -p te-to-loop,loop-to-low --print-debuginfo | filecheck %s --check-prefix=LOW
// RUN: strata-opt %s -p 'te-to-loop,cache-read{block=C buffer=A scope=local at=C.m},stage{block=C loop=m buffer=C scope=local}' --print-debuginfo | filecheck %s --check-prefix=COPIES

// A stated place is kept, through printing and lowering; every other op has its place in this file.
// CHECK: te.compute "C"
// CHECK: } loc("model.py":7:5)
// CHECK: func.return %C : tensor<4xf32> loc("{{.*}}locations.mlir":26:3)
// LOOP: loop.block "C"
// LOOP: } loc("model.py":7:5)
// LOOP: } loc("model.py":7:5)
// LOW: memref.load {{.*}} loc("model.py":7:5)
// LOW: memref.store {{.*}} loc("model.py":7:5)
// LOW: } loc("model.py":7:5)
// A copy stands where the block does that reads it or is copied out.
// COPIES: loop.block "A.local"
// COPIES: } loc("model.py":7:5)
// COPIES: loop.block "C.local.out"
// COPIES: } loc("model.py":7:5)
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %C = te.compute "C" [m = 4] (%a = %A[m] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %a, %a : f32
    te.yield %0 : f32
  } loc("model.py":7:5)
  func.return %C : tensor<4xf32>
}
