// RUN: not strata-opt %s -p 'te-alternatives{policy=loose}' 2>&1 | filecheck %s --check-prefix=POLICY
// RUN: not strata-opt %s -p te-alternatives 2>&1 | filecheck %s

// POLICY: error: unknown policy 'loose' (there are strict, contract, fast)
// CHECK: @f: 'A' is of type memref<4xf32>, expected a tensor
func.func @f(%A: memref<4xf32>) {
  func.return
}
