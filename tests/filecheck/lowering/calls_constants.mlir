// RUN: strata-opt %s -p te-to-loop | filecheck %s --check-prefix=LOOP
// RUN: strata-opt %s -p cpu -t llvm | filecheck %s --check-prefix=LLVM

// Constants that calls or copies read stand in one block, which main takes before its results; equal places of 64 bytes.
// LOOP-LABEL: func.func @layer(%X: memref<20xf32>, %constants: memref<256xi8>, %S: memref<20xf32>, %V: memref<20xf32>)
// LOOP-SAME: attributes {aligned = array<i64: 1>, outputs = 2 : i64}
// LOOP-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// LOOP-NEXT: %W = memref.view %constants[%[[ZERO]]][] : memref<256xi8> to memref<20xf32>
// LOOP-NEXT: %[[HALF:.*]] = arith.constant 128 : index
// LOOP-NEXT: %{{.*}} = memref.view %constants[%[[HALF]]][] : memref<256xi8> to memref<20xf32>
// LOOP-NEXT: func.call @add(%X, %W, %S) : (memref<20xf32>, memref<20xf32>, memref<20xf32>) -> ()
// LOOP-NEXT: "memref.copy"(%{{.*}}, %V) : (memref<20xf32>, memref<20xf32>) -> ()

// LLVM-LABEL: define void @"layer"(ptr %a0, ptr %a1, ptr %a2, ptr %a3, ptr %workspace)
// LLVM: define internal void @"layer.body"({{.*}}ptr noalias nonnull align 64 dereferenceable(256) readonly %a1,
// LLVM: %[[V:.*]] = getelementptr nusw i8, ptr %a1, i64 128
// LLVM: call void @"add"(ptr %a0, ptr %a1, ptr %a2, ptr %scratch)
// LLVM-NEXT: call void @llvm.memcpy.p0.p0.i64(ptr align 4 %a3, ptr align 64 %[[V]], i64 80, i1 false)
func.func @layer(%X: tensor<20xf32>) -> (tensor<20xf32>, tensor<20xf32>) {
  %W = te.constant dense<0.5> : tensor<20xf32>
  %unused = te.constant dense<2.0> : tensor<64xf32>
  %V = te.constant dense<1.5> : tensor<20xf32>
  %S = func.call @add(%X, %W) : (tensor<20xf32>, tensor<20xf32>) -> tensor<20xf32>
  func.return %S, %V : tensor<20xf32>, tensor<20xf32>
}
func.func private @add(%a: tensor<20xf32>, %b: tensor<20xf32>) -> tensor<20xf32> attributes {te.group} {
  %c = te.compute "add" [i = 20] (%x = %a[i] : tensor<20xf32>, %y = %b[i] : tensor<20xf32>) -> tensor<20xf32> {
    %0 = arith.addf %x, %y : f32
    te.yield %0 : f32
  }
  func.return %c : tensor<20xf32>
}
