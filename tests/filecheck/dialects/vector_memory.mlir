// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// Upstream's operations that xDSL leaves out, in upstream's syntax.
// CHECK-LABEL: @strided
func.func @strided(%A: memref<8x16xf32>, %B: memref<64xi8>, %i: index, %mask: vector<4xi1>) {
  %steps = arith.constant dense<[0, 16, 32, 48]> : vector<4xindex>
  %zero = arith.constant dense<0.0> : vector<4xf32>
  %some = arith.constant dense<1> : vector<4xi8>
  // CHECK: %x = vector.gather %A[%i, %i] [%steps], %mask, %zero : memref<8x16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  %x = vector.gather %A[%i, %i] [%steps], %mask, %zero
      : memref<8x16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  // CHECK-NEXT: vector.scatter %A[%i, %i] [%steps], %mask, %x : memref<8x16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  vector.scatter %A[%i, %i] [%steps], %mask, %x : memref<8x16xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  // CHECK-NEXT: vector.scatter %B[%i] [%steps], %mask, %some {hint} : memref<64xi8>, vector<4xindex>, vector<4xi1>, vector<4xi8>
  vector.scatter %B[%i] [%steps], %mask, %some {hint} : memref<64xi8>, vector<4xindex>, vector<4xi1>, vector<4xi8>
  func.return
}

// CHECK-LABEL: @prefetches
func.func @prefetches(%A: memref<8x16xf32>, %S: memref<f64>, %i: index) {
  // CHECK: memref.prefetch %A[%i, %i], read, locality<3>, data : memref<8x16xf32>
  memref.prefetch %A[%i, %i], read, locality<3>, data : memref<8x16xf32>
  // CHECK-NEXT: memref.prefetch %A[%i, %i], write, locality<0>, instr {hint} : memref<8x16xf32>
  memref.prefetch %A[%i, %i], write, locality<0>, instr {hint} : memref<8x16xf32>
  // CHECK-NEXT: memref.prefetch %S[], write, locality<1>, data : memref<f64>
  memref.prefetch %S[], write, locality<1>, data : memref<f64>
  func.return
}
