// RUN: strata-opt %s -p te-to-loop | filecheck %s --check-prefix=LOOP
// RUN: strata-opt %s -p te-to-loop,loop-to-low | filecheck %s --check-prefix=LOW
// RUN: strata-opt %s -p cpu --target=llvm | filecheck %s --check-prefix=LLVM

// LOOP-LABEL: @scaled(%A: memref<4xf32>, %B: memref<4xf32>)
// LOOP-NEXT: %W = loop.constant "W" dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
// LOOP: (%a = %A[i] : memref<4xf32>, %w = %W[i] : memref<4xf32>)

// LOW: memref.global "private" constant @scaled_W : memref<4xf32> = dense<[1.0, -1.0, 0.5, 0.0]>
// LOW-LABEL: @scaled(
// LOW: %W = memref.get_global @scaled_W : memref<4xf32>
// LOW: memref.load %W[%{{.*}}] : memref<4xf32>

// LLVM: @"scaled_W" = private unnamed_addr constant [16 x i8] c"\00\00\80\3F\00\00\80\BF\00\00\00\3F\00\00\00\00", align 64
// LLVM: ptr @"scaled_W"
func.func @scaled(%A: tensor<4xf32>) -> tensor<4xf32> {
  %W = te.constant dense<[1.0, -1.0, 0.5, 0.0]> : tensor<4xf32>
  %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>, %w = %W[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %w : f32
    te.yield %0 : f32
  }
  func.return %B : tensor<4xf32>
}

// A constant that is returned is copied.
// LOOP-LABEL: @returned(%W: memref<2xui8>)
// LOOP-NEXT: loop.constant "W.1" dense<[1, 255]> : tensor<2xui8>
// LOW: memref.global "private" constant @returned_W_1 : memref<2xi8> = dense<[1, -1]>
func.func @returned() -> tensor<2xui8> {
  %W = te.constant dense<[1, 255]> : tensor<2xui8>
  func.return %W : tensor<2xui8>
}
