// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{takes 2 indices, not 1}}
// PAYLOAD: ldmatrix s/%S, %i, %i/%S, %i/ s/index, index)/index)/

// -----

// expected-error@+2 {{2 matrices of f16 are no vector<4x2xf16>}}
// PAYLOAD: ldmatrix s/numTiles = 4/numTiles = 2/

// -----

// expected-error@+2 {{1, 2 or 4 matrices are loaded at once}}
// PAYLOAD: ldmatrix s/numTiles = 4/numTiles = 3/ s/4x2xf16/3x2xf16/

// -----

// expected-error@+2 {{elements of 16 bits alone can be transposed}}
// PAYLOAD: ldmatrix s/f16, 3/f32, 3/g s/false/true/ s/4x2xf16/4x1xf32/

// -----

func.func @f(%a: vector<4x2xf16>, %b: vector<2x2xbf16>, %c: vector<2x2xf32>) {
  // expected-error@below {{a warp does not add the product of vector<4x2xf16> and vector<2x2xbf16> to vector<2x2xf32>}}
  %d = "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16, 8, 16]}> : (vector<4x2xf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
  func.return
}

// -----

func.func @f(%a: vector<4x2xf16>, %b: vector<2x2xf16>, %c: vector<2x2xf32>) {
  // expected-error@below {{the shape of this product is 16, 8, 16}}
  %d = "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16, 8, 8]}> : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
  func.return
}

// -----

func.func @f(%a: f32, %o: i32, %w: i32) {
  // expected-error@below {{a value of type f32 is handed on, not one of i32}}
  %b, %there = "gpu.shuffle"(%a, %o, %w) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (i32, i1)
  func.return
}

// -----

// expected-error@+2 {{matrices are loaded from shared memory, which memref<16x24xf16> is not}}
// PAYLOAD: ldmatrix s/f16, 3/f16/g
