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

// A store before a parallel loop does not make an element safe to load and store back in each iteration.
// CHECK-LABEL: @across_threads
func.func @across_threads(%A: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  memref.store %zero, %A[%c0] : memref<8xf32>
  // CHECK: "scf.parallel"
  // CHECK: %[[UB:.*]] = arith.subi %n, %i
  // CHECK-NEXT: scf.for %k = %c0 to %[[UB]] step %c1 {
  // CHECK-NEXT: memref.load %A[%c0]
  "scf.parallel"(%c0, %c8, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %ub = arith.subi %n, %i : index
    scf.for %k = %c0 to %ub step %c1 {
      %t = memref.load %A[%c0] : memref<8xf32>
      %s = arith.addf %t, %t : f32
      memref.store %s, %A[%c0] : memref<8xf32>
    }
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}

// A masked accumulator climbs out of both loops under its mask, and the init before it is forwarded.
// CHECK-LABEL: @masked
func.func @masked(%A: memref<4x8x16xf32>, %C: memref<16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %mask = vector.create_mask %n : vector<16xi1>
  // CHECK-NOT: %C[
  // CHECK: %[[R:.*]] = scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args(%{{.*}} = %zero) -> (vector<16xf32>) {
  // CHECK-NEXT: %[[I:.*]] = scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args
  // CHECK-NEXT: vector.load %A
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: scf.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: scf.yield %[[I]]
  // CHECK-NEXT: }
  // CHECK-NEXT: vector.maskedstore %C[%c0], %mask, %[[R]]
  // CHECK-NEXT: func.return
  vector.maskedstore %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32>
  scf.for %i = %c0 to %c4 step %c1 {
    scf.for %k = %c0 to %c8 step %c1 {
      %t = vector.maskedload %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      %a = vector.load %A[%i, %k, %c0] : memref<4x8x16xf32>, vector<16xf32>
      %s = arith.addf %t, %a : vector<16xf32>
      vector.maskedstore %C[%c0], %mask, %s : memref<16xf32>, vector<16xi1>, vector<16xf32>
    }
  }
  func.return
}

// Where the lanes outside the mask are seen, as here by a sum of all lanes, the load stays.
// CHECK-LABEL: @other_lanes_summed
func.func @other_lanes_summed(%C: memref<16xf32>, %S: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %one = arith.constant dense<1.0> : vector<16xf32>
  %mask = vector.create_mask %n : vector<16xi1>
  // CHECK: scf.for %k = %c0 to %c8 step %c1 {
  // CHECK-NEXT: vector.maskedload %C
  scf.for %k = %c0 to %c8 step %c1 {
    %t = vector.maskedload %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %s = arith.addf %t, %one : vector<16xf32>
    %r = vector.reduction <add>, %s : vector<16xf32> into f32
    memref.store %r, %S[%k] : memref<8xf32>
    vector.maskedstore %C[%c0], %mask, %s : memref<16xf32>, vector<16xi1>, vector<16xf32>
  }
  func.return
}

// The same where another store keeps them: of all lanes, or under another mask.
// CHECK-LABEL: @other_lanes_stored
func.func @other_lanes_stored(%C: memref<16xf32>, %D: memref<16xf32>, %n: index, %m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %one = arith.constant dense<1.0> : vector<16xf32>
  %mask = vector.create_mask %n : vector<16xi1>
  %other = vector.create_mask %m : vector<16xi1>
  // CHECK: scf.for %k = %c0 to %c8 step %c1 {
  // CHECK-NEXT: vector.maskedload %C
  scf.for %k = %c0 to %c8 step %c1 {
    %t = vector.maskedload %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %s = arith.addf %t, %one : vector<16xf32>
    vector.store %s, %D[%c0] : memref<16xf32>, vector<16xf32>
    vector.maskedstore %C[%c0], %mask, %s : memref<16xf32>, vector<16xi1>, vector<16xf32>
  }
  // CHECK: scf.for %k{{.*}} = %c0 to %c8 step %c1 {
  // CHECK-NEXT: vector.maskedload %C
  scf.for %k = %c0 to %c8 step %c1 {
    %t = vector.maskedload %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %s = arith.addf %t, %one : vector<16xf32>
    vector.maskedstore %D[%c0], %other, %s : memref<16xf32>, vector<16xi1>, vector<16xf32>
    vector.maskedstore %C[%c0], %mask, %s : memref<16xf32>, vector<16xi1>, vector<16xf32>
  }
  func.return
}

// A load under a mask takes a value that was stored under the same mask, not one under another.
// CHECK-LABEL: @forwarded
func.func @forwarded(%C: memref<16xf32>, %D: memref<16xf32>, %x: vector<16xf32>, %mask: vector<16xi1>, %other: vector<16xi1>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  // CHECK: vector.maskedstore %C[%c0], %mask, %x
  // CHECK-NEXT: vector.maskedstore %D[%c0], %mask, %x
  vector.maskedstore %C[%c0], %mask, %x : memref<16xf32>, vector<16xi1>, vector<16xf32>
  %t = vector.maskedload %C[%c0], %mask, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.maskedstore %D[%c0], %mask, %t : memref<16xf32>, vector<16xi1>, vector<16xf32>
  // CHECK-NEXT: [[U:%.*]] = vector.maskedload %C[%c0], %other
  // CHECK-NEXT: vector.maskedstore %D[%c0], %other, [[U]]
  %u = vector.maskedload %C[%c0], %other, %zero : memref<16xf32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.maskedstore %D[%c0], %other, %u : memref<16xf32>, vector<16xi1>, vector<16xf32>
  func.return
}

// What is only prefetched is never touched; a temporary that is only written goes, and its prefetches with it.
// CHECK-LABEL: @prefetched
func.func @prefetched(%A: memref<8xf32>, %C: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %T = memref.alloc() : memref<4xf32>
  // CHECK-NOT: memref.alloc
  // CHECK-NOT: %T
  // CHECK: scf.for %k = %c0 to %c8 step %c1 iter_args
  // CHECK-NEXT: memref.prefetch %C
  // CHECK-NEXT: memref.load %A
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: scf.yield
  scf.for %k = %c0 to %c8 step %c1 {
    memref.prefetch %C[%c1], write, locality<3>, data : memref<4xf32>
    memref.prefetch %T[%c1], write, locality<3>, data : memref<4xf32>
    %t = memref.load %C[%c0] : memref<4xf32>
    %a = memref.load %A[%k] : memref<8xf32>
    %s = arith.addf %t, %a : f32
    memref.store %s, %C[%c0] : memref<4xf32>
    memref.store %s, %T[%c0] : memref<4xf32>
  }
  func.return
}
