// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%S: memref<16x24xf16, 3>, %i: index) {
  // expected-error@below {{takes 2 indices, not 1}}
  %a = "nvgpu.ldmatrix"(%S, %i) <{numTiles = 4 : i32, transpose = false}> : (memref<16x24xf16, 3>, index) -> vector<4x2xf16>
  func.return
}

// -----

func.func @f(%S: memref<16x24xf16, 3>, %i: index) {
  // expected-error@below {{2 matrices of f16 are no vector<4x2xf16>}}
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 2 : i32, transpose = false}> : (memref<16x24xf16, 3>, index, index) -> vector<4x2xf16>
  func.return
}

// -----

func.func @f(%S: memref<16x24xf16, 3>, %i: index) {
  // expected-error@below {{1, 2 or 4 matrices are loaded at once}}
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 3 : i32, transpose = false}> : (memref<16x24xf16, 3>, index, index) -> vector<3x2xf16>
  func.return
}

// -----

func.func @f(%S: memref<16x24xf32, 3>, %i: index) {
  // expected-error@below {{elements of 16 bits alone can be transposed}}
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 4 : i32, transpose = true}> : (memref<16x24xf32, 3>, index, index) -> vector<4x1xf32>
  func.return
}

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

func.func @f(%S: memref<16x24xf16>, %i: index) {
  // expected-error@below {{matrices are loaded from shared memory, which memref<16x24xf16> is not}}
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 4 : i32, transpose = false}> : (memref<16x24xf16>, index, index) -> vector<4x2xf16>
  func.return
}
