// RUN: strata-opt %s -p te-canonicalize --verify-diagnostics

// expected-error@unknown {{@f: 'A' is of type memref<4xf32>, expected a tensor}}
func.func @f(%A: memref<4xf32>) {
  func.return
}
