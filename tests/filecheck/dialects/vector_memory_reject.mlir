// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xindex>, %mask: vector<3xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{the places, the mask and the value have different numbers of lanes}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xindex>, vector<3xi1>, vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index, %at: vector<2x2xindex>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{the places, the mask and the value are vectors of one dimension}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<2x2xindex>, vector<4xi1>, vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xf32>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{the places are not integers}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xf32>, vector<4xi1>, vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi8>, %v: vector<4xf32>) {
  // expected-error@+1 {{the mask is not of i1}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xindex>, vector<4xi8>, vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi1>, %v: vector<4xf64>) {
  // expected-error@+1 {{the vector's elements are not of the buffer's type}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf64>
  func.return
}
// -----
func.func @f(%A: memref<8x8xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{memref<8x8xf32> takes 2 indices, not 1}}
  vector.scatter %A[%i] [%at], %mask, %v : memref<8x8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<8x8xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{memref<8x8xf32> takes 2 indices, not 1}}
  %x = vector.gather %A[%i] [%at], %mask, %v : memref<8x8xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  // expected-error@+1 {{the result is not of the type of what it is where the mask is false}}
  %x = vector.gather %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32> into vector<8xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index) {
  // expected-error@+1 {{the locality is a number from 0 to 3}}
  memref.prefetch %A[%i], read, locality<4>, data : memref<64xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index) {
  // expected-error@+1 {{memref<64xf32> takes 1 indices, not 2}}
  memref.prefetch %A[%i, %i], read, locality<3>, data : memref<64xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index) {
  // expected-error@+1 {{'read' or 'write' expected}}
  memref.prefetch %A[%i], both, locality<3>, data : memref<64xf32>
  func.return
}
// -----
func.func @f(%A: memref<64xf32>, %i: index) {
  // expected-error@+1 {{'data' or 'instr' expected}}
  memref.prefetch %A[%i], read, locality<3>, code : memref<64xf32>
  func.return
}
