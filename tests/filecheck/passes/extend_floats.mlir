// RUN: strata-opt %s -p extend-floats | filecheck %s

// bf16 is computed in f32, each result rounded once.
// CHECK-LABEL: @add
func.func @add(%a: bf16, %b: bf16) -> bf16 {
  // CHECK: %[[A:.*]] = arith.extf %a : bf16 to f32
  // CHECK: %[[B:.*]] = arith.extf %b : bf16 to f32
  // CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : f32
  // CHECK: arith.truncf %[[S]] : f32 to bf16
  %0 = arith.addf %a, %b : bf16
  func.return %0 : bf16
}

// Of f16 the mathematics only: processors add halves.
// CHECK-LABEL: @f16
func.func @f16(%a: vector<4xf16>) -> vector<4xf16> {
  // CHECK: arith.addf %a, %a : vector<4xf16>
  // CHECK: arith.extf %{{.*}} : vector<4xf16> to vector<4xf32>
  // CHECK: math.exp %{{.*}} : vector<4xf32>
  // CHECK: arith.truncf %{{.*}} : vector<4xf32> to vector<4xf16>
  %0 = arith.addf %a, %a : vector<4xf16>
  %1 = math.exp %0 : vector<4xf16>
  func.return %1 : vector<4xf16>
}
