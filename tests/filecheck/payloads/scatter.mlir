func.func @f(%A: memref<64xf32>, %i: index, %at: vector<4xindex>, %mask: vector<4xi1>, %v: vector<4xf32>) {
  vector.scatter %A[%i] [%at], %mask, %v : memref<64xf32>, vector<4xindex>, vector<4xi1>, vector<4xf32>
  func.return
}
