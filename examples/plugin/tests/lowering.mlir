// RUN: strata-opt %s -p lower-example | filecheck %s

// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: arith.addf [[X:%\w+]], [[X]] : f32
func.func @twice(%x: f32) -> f32 {
  %y = example.double %x : f32
  func.return %y : f32
}
