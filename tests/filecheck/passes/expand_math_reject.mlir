// RUN: not strata-opt %s -p expand-math 2>&1 | filecheck %s
// RUN: not strata-opt %s -p 'expand-math{policy=loose}' 2>&1 | filecheck %s --check-prefix=POLICY
// POLICY: error: unknown policy 'loose' (there are strict, contract, fast)

// CHECK: error: expand-math takes the low level, which 'func.func' here is above
func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = te.compute "B" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = math.exp %a : f32
    te.yield %0 : f32
  }
  func.return %B : tensor<4xf32>
}
