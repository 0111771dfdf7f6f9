// RUN: strata-opt %s --verify-diagnostics

func.func @twice(%x: i32) {
  // expected-error@below {{example.double is of floats, not of i32}}
  %y = example.double %x : i32
  func.return
}
