// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{the places, the mask and the value have different numbers of lanes}}
// PAYLOAD: scatter s/4xi1/3xi1/g
// -----
// expected-error@+2 {{the places, the mask and the value are vectors of one dimension}}
// PAYLOAD: scatter s/4xindex/2x2xindex/g
// -----
// expected-error@+2 {{the places are not integers}}
// PAYLOAD: scatter s/4xindex/4xf32/g
// -----
// expected-error@+2 {{the mask is not of i1}}
// PAYLOAD: scatter s/4xi1/4xi8/g
// -----
// expected-error@+2 {{the vector's elements are not of the buffer's type}}
// PAYLOAD: scatter s/vector<4xf32>/vector<4xf64>/g
// -----
// expected-error@+2 {{memref<8x8xf32> takes 2 indices, not 1}}
// PAYLOAD: scatter s/64xf32/8x8xf32/g
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
// expected-error@+2 {{the locality is a number from 0 to 3}}
// PAYLOAD: prefetch s/locality<3>/locality<4>/
// -----
// expected-error@+2 {{memref<64xf32> takes 1 indices, not 2}}
// PAYLOAD: prefetch s/[%i]/[%i, %i]/
// -----
// expected-error@+2 {{'read' or 'write' expected}}
// PAYLOAD: prefetch s/read/both/
// -----
// expected-error@+2 {{'data' or 'instr' expected}}
// PAYLOAD: prefetch s/data/code/
