// RUN: strata-opt %s | strata-opt | filecheck %s

// CHECK-LABEL: func.func @multiply
func.func @multiply(%S: memref<16x24xf16, 3>, %i: index, %b: vector<2x2xf16>, %c: vector<2x2xf32>) -> vector<2x2xf32> {
  // CHECK: %[[A:.*]] = "nvgpu.ldmatrix"(%S, %i, %i) <{{.*}}numTiles = 4 : i32{{.*}} : (memref<16x24xf16, 3 : i64>, index, index) -> vector<4x2xf16>
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 4 : i32, transpose = false}> : (memref<16x24xf16, 3>, index, index) -> vector<4x2xf16>
  // CHECK: "nvgpu.mma.sync"(%[[A]], %b, %c) <{mmaShape = [16 : i64, 8 : i64, 16 : i64]}>
  %d = "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16, 8, 16]}> : (vector<4x2xf16>, vector<2x2xf16>, vector<2x2xf32>) -> vector<2x2xf32>
  func.return %d : vector<2x2xf32>
}

// CHECK-LABEL: func.func @single
func.func @single(%a: vector<4x1xf32>, %b: vector<2x1xf32>, %c: vector<2x2xf32>) -> vector<2x2xf32> {
  // CHECK: "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16 : i64, 8 : i64, 8 : i64], tf32Enabled}>
  %d = "nvgpu.mma.sync"(%a, %b, %c) <{mmaShape = [16, 8, 8], tf32Enabled}> : (vector<4x1xf32>, vector<2x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
  func.return %d : vector<2x2xf32>
}

// CHECK-LABEL: func.func @exchange
func.func @exchange(%a: f32, %o: i32, %w: i32) -> f32 {
  // CHECK: "gpu.shuffle"(%a, %o, %w) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)
  %b, %there = "gpu.shuffle"(%a, %o, %w) <{mode = #gpu<shuffle_mode xor>}> : (f32, i32, i32) -> (f32, i1)
  func.return %b : f32
}
