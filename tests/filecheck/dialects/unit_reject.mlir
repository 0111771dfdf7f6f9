// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%B: memref<8x16xi8>, %k: index) {
  // expected-error@below {{memref<8x16xi8> takes 2 indices, not 1}}
  %b = unit.load %B[%k] : memref<8x16xi8>, vector<64xi8>
  func.return
}

// -----

func.func @f(%B: memref<8x16xi8>, %k: index) {
  // expected-error@below {{memref<8x16xi8> holds no elements of vector<64xi16>}}
  %b = unit.load %B[%k, %k] : memref<8x16xi8>, vector<64xi16>
  func.return
}

// -----

func.func @f(%B: memref<2x16xi8>, %k: index, %b: vector<64xi8>) {
  // expected-error@below {{memref<2x16xi8> holds fewer elements than vector<64xi8>}}
  unit.store %b, %B[%k, %k] : memref<2x16xi8>, vector<64xi8>
  func.return
}

// -----

func.func @f(%c: vector<16xi32>, %a: vector<4xi8>, %b: vector<32xi8>) {
  // expected-error@below {{vector<32xi8> is not a group of vector<4xi8> for each of vector<16xi32>}}
  %d = unit.dot "dot.i32.u8i8x4" %c, %a, %b : vector<16xi32>, vector<4xi8>, vector<32xi8> -> vector<16xi32>
  func.return
}

// -----

func.func @f(%X: memref<32x32xbf16>, %k: index) {
  // expected-error@below {{memref<32x32xbf16> takes 2 indices, not 1}}
  %t = unit.tile_load %X[%k] by %k : memref<32x32xbf16>
  func.return
}

// -----

func.func @f(%X: memref<32x32xbf16>, %k: index, %t: vector<256xi32>) {
  // expected-error@below {{memref<32x32xbf16> takes 2 indices, not 3}}
  unit.tile_store %t, %X[%k, %k, %k] by %k : memref<32x32xbf16>
  func.return
}
