// RUN: strata-opt %s | strata-opt - | filecheck %s

// CHECK-LABEL: @ldexp
func.func @ldexp(%x: f64, %n: i64, %v: vector<16xf32>, %m: vector<16xi32>) -> (f64, vector<16xf32>) {
  // CHECK: llvm.call_intrinsic "llvm.ldexp.f64.i64"(%x, %n) : (f64, i64) -> f64
  // CHECK: llvm.call_intrinsic "llvm.ldexp.v16f32.v16i32"(%v, %m) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
  // CHECK: llvm.call_intrinsic "llvm.ldexp.f64.i64"(%x, %n) {normal} : (f64, i64) -> f64
  %0 = llvm.call_intrinsic "llvm.ldexp.f64.i64"(%x, %n) : (f64, i64) -> f64
  %1 = llvm.call_intrinsic "llvm.ldexp.v16f32.v16i32"(%v, %m) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
  %2 = llvm.call_intrinsic "llvm.ldexp.f64.i64"(%x, %n) {normal} : (f64, i64) -> f64
  func.return %0, %1 : f64, vector<16xf32>
}
