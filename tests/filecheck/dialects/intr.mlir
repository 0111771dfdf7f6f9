// RUN: strata-opt %s | strata-opt - | filecheck %s

// CHECK-LABEL: @ldexp
func.func @ldexp(%x: f64, %n: i64, %v: vector<16xf32>, %m: vector<16xi32>) -> (f64, vector<16xf32>) {
  // CHECK: intr.ldexp %x, %n : f64, i64
  // CHECK: intr.ldexp %v, %m : vector<16xf32>, vector<16xi32>
  // CHECK: intr.ldexp %x, %n normal : f64, i64
  %0 = intr.ldexp %x, %n : f64, i64
  %1 = intr.ldexp %v, %m : vector<16xf32>, vector<16xi32>
  %2 = intr.ldexp %x, %n normal : f64, i64
  func.return %0, %1 : f64, vector<16xf32>
}
