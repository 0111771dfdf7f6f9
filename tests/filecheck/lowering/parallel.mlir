// RUN: strata-opt %s -p loop-to-low | filecheck %s
// RUN: strata-opt %s -p loop-to-cpu -t llvm | filecheck %s --check-prefix=LLVM

// A parallel loop is an scf.parallel, its bound narrowed by a guard; its buffer is private to each iteration.
// CHECK-LABEL: @rows
// CHECK: scf.for %k = %c0 to %c2 step %c1 {
// CHECK: %[[UB:.*]] = arith.minsi %c5,
// CHECK: "scf.parallel"(%c0, %[[UB]], %c1)
// CHECK-NEXT: ^bb0(%m: index):
// CHECK-NEXT: %T = memref.alloc() : memref<8xf32>
// CHECK: scf.for %j = %c0 to %c8 step %c1 {
// CHECK: scf.reduce

// The entry takes the count of threads last, and gives the body the first thread's part of the workspace.
// LLVM-LABEL: define void @"rows"(ptr %a0, ptr %a1, ptr %workspace, i32 %threads)
// LLVM: %private = getelementptr inbounds i8, ptr %workspace, i64 0
// LLVM: call void @"rows.body"(ptr %a0, ptr %a1, ptr %private, i32 %threads)

// One thread calls the share of everything; several go through the runtime.
// LLVM-LABEL: define internal void @"rows.body"(
// LLVM-SAME: ptr noalias nonnull align 64 %private, i32 %threads)
// LLVM: %[[THREADS:.*]] = zext i32 %threads to i64
// LLVM-NEXT: %[[TEAM:.*]] = call i64 @llvm.umin.i64(i64 %[[THREADS]], i64
// LLVM-NEXT: %[[MORE:.*]] = icmp ugt i64 %[[TEAM]], 1
// LLVM-NEXT: br i1 %[[MORE]], label %several
// LLVM: call void @"rows.body.parallel0.share"(i64 0, i64 %
// LLVM: store [17 x i64] zeroinitializer
// LLVM: call void @".join"(ptr %[[DATA:.*]], i64 %[[TEAM]])
// LLVM-NEXT: call void @GOMP_parallel(ptr @"rows.body.parallel0", ptr %[[DATA]]

// What is known of a buffer holds inside: X is only read here, T is the thread's own.
// LLVM-LABEL: define internal void @"rows.body.parallel0.share"(i64 %first, i64 %end
// LLVM-SAME: ptr noalias nonnull align 4 dereferenceable(160) readonly %x
// LLVM-SAME: ptr noalias nonnull align 4 dereferenceable(160) %x
// LLVM-SAME: ptr noalias nonnull align 64 dereferenceable(32) %p0) noinline noduplicate
// LLVM: phi i64 [ %first, %entry ]
// LLVM: !llvm.loop !2

// Each thread finds its share by its number, and its part of the workspace. Before, the first one sees the others come,
// and these leave a processor that is taken.
// LLVM-LABEL: define internal void @"rows.body.parallel0"(ptr %data)
// LLVM: call i32 @omp_get_thread_num()
// LLVM: call i32 @omp_get_num_threads()
// LLVM: %[[NUMBER:.*]] = icmp eq i64
// LLVM-NEXT: br i1 %[[NUMBER]], label %first{{[0-9]+}}, label %other
// LLVM: call void @".meet"(ptr %data, i64
// LLVM: call void @".join"(ptr %data, i64
// LLVM: mul nuw nsw i64 %{{.*}}, 4160
// LLVM: call void @"rows.body.parallel0.share"(
func.func @rows(%X: memref<5x8xf32>, %Y: memref<5x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 2 {
    loop.for "m" %m = 5 parallel {
      %T = loop.alloc "T" : memref<8xf32>
      loop.for "i" %i = 8 {
        loop.block "T" [m = 5 at %m, i = 8 at %i, k = 2 at %k] where (%k * -2 - %m + 4 >= 0)
            (%x = %X[m, i] : memref<5x8xf32>) -> (%T[i] : memref<8xf32>) {
          loop.yield %x : f32
        }
      }
      loop.for "j" %j = 8 {
        loop.block "Y" [m = 5 at %m, j = 8 at %j, k = 2 at %k] where (%k * -2 - %m + 4 >= 0)
            (%t = %T[7 - j] : memref<8xf32>) -> (%Y[m, j] : memref<5x8xf32>) {
          loop.yield %t : f32
        }
      }
    }
  }
  func.return
}

// Perfectly nested parallel loops are one region. Without a loop inside, a thread walks whole rows.
// CHECK-LABEL: @both
// CHECK: "scf.parallel"(%c0, %c0, %c4, %c6, %c1, %c1)
// CHECK-NEXT: ^bb0(%i: index, %j: index):
// LLVM-LABEL: define internal void @"both.body.parallel0.share"
// LLVM: phi i64 [ %first, %entry ]
// LLVM: phi i64 [ 0, %body
// LLVM: icmp slt i64 %{{.*}}, 6
func.func @both(%X: memref<4x6xf32>, %Y: memref<4x6xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 parallel {
    loop.for "j" %j = 6 parallel {
      loop.block "Y" [i = 4 at %i, j = 6 at %j] (%x = %X[i, j] : memref<4x6xf32>) -> (%Y[i, j] : memref<4x6xf32>) {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
