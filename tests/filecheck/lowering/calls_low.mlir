// RUN: strata-opt %s -t llvm | filecheck %s

// A function that is elsewhere says what it takes beside its arguments: scratch memory, and the count of threads.
// CHECK-LABEL: define void @"main"(ptr %a0, ptr %a1, ptr %workspace, i32 %threads)
// CHECK-NEXT: %scratch = getelementptr i8, ptr %workspace, i64 0
// CHECK-NEXT: call void @"main.body"(ptr %a0, ptr %a1, ptr %scratch, i32 %threads)
// CHECK: call void @"first"(ptr %a0, ptr %a1, ptr %scratch)
// CHECK: call void @"second"(ptr %a0, ptr %a1, ptr %scratch, i32 %threads)
func.func @main(%A: memref<4xf32>, %B: memref<4xf32>) attributes {outputs = 1 : i64} {
  func.call @first(%A, %B) : (memref<4xf32>, memref<4xf32>) -> ()
  func.call @second(%A, %B) : (memref<4xf32>, memref<4xf32>) -> ()
  func.return
}
// CHECK: declare void @"first"(ptr, ptr, ptr)
func.func private @first(memref<4xf32>, memref<4xf32>) attributes {outputs = 1 : i64, workspace = array<i64: 256, 0>}
// CHECK: declare void @"second"(ptr, ptr, ptr, i32)
func.func private @second(memref<4xf32>, memref<4xf32>) attributes {outputs = 1 : i64, parallel, workspace = array<i64: 64, 4160>}
