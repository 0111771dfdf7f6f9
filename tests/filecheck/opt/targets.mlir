// RUN: strata-opt %s -p cpu -t llvm | filecheck %s
// RUN: strata-opt %s -p cpu -t asm | filecheck %s --check-prefix=ASM

// CHECK: define void @"relu"(
// CHECK: "target-cpu"=

// ASM: relu:
// ASM: ret
func.func @relu(%A: tensor<64xf32>) -> tensor<64xf32> {
  %B = te.compute "B" [i = 64] (%a = %A[i] : tensor<64xf32>) -> tensor<64xf32> {
    %zero = arith.constant 0.0 : f32
    %0 = arith.maximumf %a, %zero : f32
    te.yield %0 : f32
  }
  func.return %B : tensor<64xf32>
}
