func.func @f(%S: memref<16x24xf16, 3>, %i: index) {
  %a = "nvgpu.ldmatrix"(%S, %i, %i) <{numTiles = 4 : i32, transpose = false}> : (memref<16x24xf16, 3>, index, index) -> vector<4x2xf16>
  func.return
}
