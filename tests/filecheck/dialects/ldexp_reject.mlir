// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%x: f32, %n: i64) -> f32 {
  // expected-error@+1 {{f32 cannot be scaled by powers of two in i64}}
  %0 = llvm.call_intrinsic "llvm.ldexp.f32.i64"(%x, %n) : (f32, i64) -> f32
  func.return %0 : f32
}
// -----
func.func @f(%x: f16, %n: i16) -> f16 {
  // expected-error@+1 {{f16 cannot be scaled by powers of two in i16}}
  %0 = llvm.call_intrinsic "llvm.ldexp.f16.i16"(%x, %n) : (f16, i16) -> f16
  func.return %0 : f16
}
// -----
func.func @f(%x: vector<4xf32>, %n: vector<8xi32>) -> vector<4xf32> {
  // expected-error@+1 {{vector<4xf32> cannot be scaled by powers of two in vector<8xi32>}}
  %0 = llvm.call_intrinsic "llvm.ldexp.v4f32.v8i32"(%x, %n) : (vector<4xf32>, vector<8xi32>) -> vector<4xf32>
  func.return %0 : vector<4xf32>
}
