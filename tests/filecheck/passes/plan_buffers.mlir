// RUN: strata-opt %s -p plan-buffers | filecheck %s

// T and V never live together and share a slot; U overlaps both and has its own.
// CHECK-LABEL: @chain
func.func @chain(%A: memref<4xf32>) {
  // CHECK: memref.alloc() {alignment = 64 : i64} : memref<32xi8>
  // CHECK-NEXT: %T = memref.view %slot{{.*}}[%{{.*}}][] : memref<32xi8> to memref<4xf32>
  // CHECK-NEXT: %V = memref.view %slot{{.*}}[%{{.*}}][] : memref<32xi8> to memref<8xf32>
  // CHECK-NEXT: memref.alloc() {alignment = 64 : i64} : memref<16xi8>
  // CHECK-NEXT: %U = memref.view
  %c0 = arith.constant 0 : index
  %T = memref.alloc() : memref<4xf32>
  %U = memref.alloc() : memref<4xf32>
  %V = memref.alloc() : memref<8xf32>
  %a = memref.load %A[%c0] : memref<4xf32>
  memref.store %a, %T[%c0] : memref<4xf32>
  memref.store %a, %U[%c0] : memref<4xf32>
  %t = memref.load %T[%c0] : memref<4xf32>
  memref.store %t, %V[%c0] : memref<8xf32>
  %u = memref.load %U[%c0] : memref<4xf32>
  memref.store %u, %V[%c0] : memref<8xf32>
  func.return
}

// What a parallel loop allocates gets a slot in its body, also out of a serial loop in it; T outside has its own.
// CHECK-LABEL: @private
func.func @private(%A: memref<4xf32>) {
  // CHECK: %[[OUTER:slot.*]] = memref.alloc() {alignment = 64 : i64} : memref<4xi8>
  // CHECK-NEXT: %T = memref.view %[[OUTER]]
  // CHECK: "scf.parallel"
  // CHECK-NEXT: ^bb0(%i: index):
  // CHECK-NEXT: arith.constant 0 : index
  // CHECK-NEXT: %[[INNER:.*]] = memref.alloc() {alignment = 64 : i64} : memref<16xi8>
  // CHECK-NEXT: %U = memref.view %[[INNER]]
  // CHECK-NEXT: scf.for
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %T = memref.alloc() : memref<1xf32>
  "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    scf.for %j = %c0 to %c4 step %c1 {
      %U = memref.alloc() : memref<4xf32>
      %t = memref.load %T[%c0] : memref<1xf32>
      memref.store %t, %U[%j] : memref<4xf32>
      %u = memref.load %U[%j] : memref<4xf32>
      memref.store %u, %A[%i] : memref<4xf32>
    }
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}
