// RUN: strata-opt %s -p te-to-loop | filecheck %s --check-prefix=LOOP
// RUN: strata-opt %s -p cpu | filecheck %s --check-prefix=LOW
// RUN: strata-opt %s -p cpu -t llvm | filecheck %s --check-prefix=LLVM

// Tensors between calls become buffers; a result is written by the call that gives it.
// LOOP-LABEL: func.func @layer(%X: memref<4x8xf32>, %R: memref<4x8xf32>) attributes {outputs = 1 : i64}
// LOOP-NEXT: %S = loop.alloc "S" : memref<4x8xf32>
// LOOP-NEXT: func.call @add(%X, %X, %S) : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> ()
// LOOP-NEXT: %U = loop.alloc "U" : memref<4x8xf32>
// LOOP-NEXT: func.call @normalise(%S, %U) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
// LOOP-NEXT: %V = loop.alloc "V" : memref<4x8xf32>
// LOOP-NEXT: func.call @normalise(%U, %V) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
// LOOP-NEXT: func.call @add(%V, %V, %R) : (memref<4x8xf32>, memref<4x8xf32>, memref<4x8xf32>) -> ()
// LOOP-NEXT: func.return

// One arena: S and V do not live at the same time.
// LOW-LABEL: func.func @layer
// LOW: %[[ARENA:.*]] = memref.alloc() {alignment = 64 : i64} : memref<256xi8>
// LOW-NEXT: %S = memref.view %[[ARENA]][%[[ZERO:.*]]][] : memref<256xi8> to memref<4x8xf32>
// LOW-NEXT: %[[HALF:.*]] = arith.constant 128 : index
// LOW-NEXT: %U = memref.view %[[ARENA]][%[[HALF]]][] : memref<256xi8> to memref<4x8xf32>
// LOW-NEXT: %V = memref.view %[[ARENA]][%[[ZERO]]][] : memref<256xi8> to memref<4x8xf32>
// LOW-NEXT: func.call @add(%X, %X, %S)

// The workspace that groups need themselves, here the sums of rows, is behind the arena.
// LLVM-LABEL: define void @"layer"(ptr %a0, ptr %a1, ptr %workspace)
// LLVM-NEXT: %s0 = getelementptr inbounds i8, ptr %workspace, i64 0
// LLVM-NEXT: %scratch = getelementptr i8, ptr %workspace, i64 256
// LLVM-NEXT: call void @"layer.body"(ptr %a0, ptr %a1, ptr %s0, ptr %scratch)
// LLVM: define internal void @"layer.body"(
// LLVM: %[[U:.*]] = getelementptr nusw i8, ptr %s0, i64 128
// LLVM-NEXT: call void @"add"(ptr %a0, ptr %a0, ptr %s0, ptr %scratch)
// LLVM-NEXT: call void @"normalise"(ptr %s0, ptr %[[U]], ptr %scratch)
// LLVM-NEXT: call void @"normalise"(ptr %[[U]], ptr %s0, ptr %scratch)
// LLVM-NEXT: call void @"add"(ptr %s0, ptr %s0, ptr %a1, ptr %scratch)
// LLVM-NEXT: ret void
func.func @layer(%X: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %S = func.call @add(%X, %X) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %U = func.call @normalise(%S) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %V = func.call @normalise(%U) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %R = func.call @add(%V, %V) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %R : tensor<4x8xf32>
}
// LOOP-LABEL: func.func private @add(%a: memref<4x8xf32>, %b: memref<4x8xf32>, %c: memref<4x8xf32>) attributes {te.group, outputs = 1 : i64}
// LLVM-LABEL: define void @"add"(ptr %a0, ptr %a1, ptr %a2, ptr %workspace)
func.func private @add(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {te.group} {
  %c = te.compute "add" [i = 4, j = 8]
      (%x = %a[i, j] : tensor<4x8xf32>, %y = %b[i, j] : tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = arith.addf %x, %y : f32
    te.yield %0 : f32
  }
  func.return %c : tensor<4x8xf32>
}
// LLVM-LABEL: define void @"normalise"(ptr %a0, ptr %a1, ptr %workspace)
// LLVM-NEXT: %s0 = getelementptr inbounds i8, ptr %workspace, i64 0
func.func private @normalise(%a: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {te.group} {
  %s = te.compute "sum" [i = 4, reduce j = 8] combine [add] (%x = %a[i, j] : tensor<4x8xf32>) -> tensor<4xf32> {
    te.yield %x : f32
  }
  %c = te.compute "quotient" [i = 4, j = 8]
      (%x = %a[i, j] : tensor<4x8xf32>, %y = %s[i] : tensor<4xf32>) -> tensor<4x8xf32> {
    %0 = arith.divf %x, %y : f32
    te.yield %0 : f32
  }
  func.return %c : tensor<4x8xf32>
}

// An input that is returned, and a result returned twice, are copied.
// LOOP-LABEL: func.func @copies(%A: memref<4xui8>, %B: memref<4xui8>, %A.1: memref<4xui8>, %B.1: memref<4xui8>)
// LOOP-NEXT: func.call @same(%A, %B) : (memref<4xui8>, memref<4xui8>) -> ()
// LOOP-NEXT: "memref.copy"(%A, %A.1) : (memref<4xui8>, memref<4xui8>) -> ()
// LOOP-NEXT: "memref.copy"(%B, %B.1) : (memref<4xui8>, memref<4xui8>) -> ()
// LOW-LABEL: func.func @copies(%A: memref<4xi8>, %B: memref<4xi8>, %A.1: memref<4xi8>, %B.1: memref<4xi8>)
// LOW-SAME: attributes {outputs = 3 : i64, unsigned = array<i64: 0, 1, 2, 3>}
func.func @copies(%A: tensor<4xui8>) -> (tensor<4xui8>, tensor<4xui8>, tensor<4xui8>) {
  %B = func.call @same(%A) : (tensor<4xui8>) -> tensor<4xui8>
  func.return %B, %A, %B : tensor<4xui8>, tensor<4xui8>, tensor<4xui8>
}
func.func private @same(%a: tensor<4xui8>) -> tensor<4xui8> attributes {te.group} {
  %b = te.compute "same" [i = 4] (%x = %a[i] : tensor<4xui8>) -> tensor<4xui8> {
    te.yield %x : i8
  }
  func.return %b : tensor<4xui8>
}
