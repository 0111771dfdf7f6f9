// RUN: strata-opt %s -p check-bounds | filecheck %s

// What is not surely run, or not surely outside, is accepted.
// CHECK-LABEL: @conditional
func.func @conditional(%A: memref<4xf32>, %p: i1, %n: index, %m: vector<8xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  %z = arith.constant dense<0.0> : vector<8xf32>
  scf.if %p {
    %v = memref.load %A[%c9] : memref<4xf32>
  }
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %A[%c9] : memref<4xf32>
  }
  scf.for %i = %c9 to %c0 step %c1 {
    %v = memref.load %A[%c9] : memref<4xf32>
  }
  %w = vector.maskedload %A[%c1], %m, %z : memref<4xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  %x = memref.load %A[%n] : memref<4xf32>
  func.return
}

// The parts of an index that depend on each other: 3 - i + i never leaves the buffer.
// CHECK-LABEL: @cancels
func.func @cancels(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %d = arith.subi %c3, %i : index
    %s = arith.addi %d, %i : index
    // CHECK: memref.load
    %v = memref.load %A[%s] : memref<4xf32>
    scf.for %j = %i to %c4 step %c1 {
      %e = arith.subi %j, %i : index
      %w = memref.load %A[%e] : memref<4xf32>
    }
  }
  func.return
}

// Tests that clamp.
// CHECK-LABEL: @clamped
func.func @clamped(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    %m = arith.minsi %i, %c3 : index
    %v = memref.load %A[%m] : memref<4xf32>
  }
  func.return
}
