// RUN: strata-opt %s -p promote-buffers | filecheck %s

// An accumulator climbs out of both loops, the initial store is forwarded, the buffer vanishes with its last load.
// CHECK-LABEL: @dot
func.func @dot(%A: memref<4x8xf32>, %S: memref<f32>) attributes {outputs = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %T = memref.alloc() : memref<f32>
  memref.store %zero, %T[] : memref<f32>
  // CHECK-NOT: memref.alloc
  // CHECK: %[[R:.*]] = scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args(%{{.*}} = %zero) -> (f32) {
  // CHECK-NEXT: scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
  // CHECK-NEXT: memref.load %A
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: scf.yield
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %k = %c0 to %c8 step %c1 {
      %t = memref.load %T[] : memref<f32>
      %a = memref.load %A[%i, %k] : memref<4x8xf32>
      %s = arith.addf %t, %a : f32
      memref.store %s, %T[] : memref<f32>
    }
  }
  // CHECK: memref.store %[[R]], %S[] : memref<f32>
  %r = memref.load %T[] : memref<f32>
  memref.store %r, %S[] : memref<f32>
  func.return
}

// Another access to the buffer that may be the same element keeps it in memory.
// CHECK-LABEL: @aliased
func.func @aliased(%A: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // CHECK: scf.for %k = %c0 to %c8 step %c1 {
  // CHECK-NEXT: memref.load %A[%c0]
  scf.for %k = %c0 to %c8 step %c1 {
    %t = memref.load %A[%c0] : memref<8xf32>
    %a = memref.load %A[%k] : memref<8xf32>
    %s = arith.addf %t, %a : f32
    memref.store %s, %A[%c0] : memref<8xf32>
  }
  func.return
}

// A loop that may not run at all does not make its accesses happen.
// CHECK-LABEL: @may_not_run
func.func @may_not_run(%A: memref<8xf32>, %n: index, %i: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // CHECK: scf.for %k = %c0 to %n step %c1 {
  // CHECK-NEXT: memref.load %A[%i]
  scf.for %k = %c0 to %n step %c1 {
    %t = memref.load %A[%i] : memref<8xf32>
    %s = arith.addf %t, %t : f32
    memref.store %s, %A[%i] : memref<8xf32>
  }
  func.return
}
