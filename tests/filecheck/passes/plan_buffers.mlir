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
