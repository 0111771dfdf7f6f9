func.func @f(%A: memref<64xf32>, %i: index) {
  memref.prefetch %A[%i], read, locality<3>, data : memref<64xf32>
  func.return
}
