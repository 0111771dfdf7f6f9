// RUN: strata-opt %s -p expand-math | filecheck %s
// RUN: strata-opt %s -p expand-math,expand-math | filecheck %s
// RUN: strata-opt %s -p 'expand-math{policy=strict}' | filecheck %s --check-prefix=STRICT

// x = n log 2 + r: n in the lowest bits of x / log 2 + 1.5 * 2^23, a polynomial of r, times 2^n. No flags are taken over.
// CHECK-LABEL: @exp
// STRICT-LABEL: @exp
func.func @exp(%x: f32) -> f32 {
  // CHECK-DAG: %[[SHIFT:.*]] = arith.constant 0x4B400000 : f32
  // CHECK-DAG: %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
  // CHECK: arith.cmpf ogt, %x
  // CHECK: %[[CLAMPED:.*]] = arith.select
  // CHECK: %[[N:.*]] = math.fma %{{.*}}, %[[LOG2E]], %[[SHIFT]] : f32
  // CHECK: arith.bitcast %[[N]] : f32 to i32
  // CHECK-NOT: fastmath
  // CHECK: llvm.call_intrinsic "llvm.ldexp.f32.i32"(%{{.*}}, %{{.*}}) : (f32, i32) -> f32
  // STRICT: math.exp %x fastmath<fast> : f32
  %y = math.exp %x fastmath<fast> : f32
  func.return %y : f32
}

// Any number of lanes, f64 too. The second one shares its constants with the first.
// CHECK-LABEL: @lanes
func.func @lanes(%x: vector<3xf64>) -> vector<3xf64> {
  // CHECK-COUNT-1: arith.constant 1.4426950408889634 : f64
  // CHECK-NOT: arith.constant 1.4426950408889634 : f64
  // CHECK: llvm.call_intrinsic "llvm.ldexp.v3f64.v3i64"(%{{.*}}, %{{.*}}) : (vector<3xf64>, vector<3xi64>) -> vector<3xf64>
  // CHECK: llvm.call_intrinsic "llvm.ldexp.v3f64.v3i64"(%{{.*}}, %{{.*}}) : (vector<3xf64>, vector<3xi64>) -> vector<3xf64>
  %y = math.exp %x : vector<3xf64>
  %z = math.exp %y : vector<3xf64>
  func.return %z : vector<3xf64>
}

// The exponent and the mantissa come from the bits; the ends are chosen last.
// CHECK-LABEL: @log
func.func @log(%x: vector<4xf32>) -> vector<4xf32> {
  // CHECK: arith.bitcast %{{.*}} : vector<4xf32> to vector<4xi32>
  // CHECK: arith.sitofp %{{.*}} : vector<4xi32> to vector<4xf32>
  // CHECK-COUNT-8: math.fma
  // CHECK: arith.select
  // CHECK-NEXT: arith.select
  // CHECK-NEXT: arith.select
  %y = math.log %x : vector<4xf32>
  func.return %y : vector<4xf32>
}

// Where a lane is large, the library's sine is taken for that lane.
// CHECK-LABEL: @sin
func.func @sin(%x: vector<8xf64>) -> vector<8xf64> {
  // CHECK: %[[LARGE:.*]] = arith.cmpi ult
  // CHECK: %[[ANY:.*]] = vector.reduction <or>, %[[LARGE]] : vector<8xi1> into i1
  // CHECK: scf.if %[[ANY]] -> (vector<8xi64>)
  // CHECK: math.sin %x {library} : vector<8xf64>
  // CHECK: arith.select %[[LARGE]]
  // CHECK: else
  %y = math.sin %x : vector<8xf64>
  func.return %y : vector<8xf64>
}

// Of f32 an integer product with the bits of 2 / pi is.
// CHECK-LABEL: @cos
func.func @cos(%x: f32) -> f32 {
  // CHECK: %[[LARGE:.*]] = arith.cmpi ult
  // CHECK: scf.if %[[LARGE]] -> (i32, i32)
  // CHECK: arith.muli %{{.*}} : i64
  // CHECK-NOT: math.cos
  %y = math.cos %x : f32
  func.return %y : f32
}

// erfc: its tail is e^(-x^2) times a polynomial of 1 / (2 + |x|), whose rounding is kept beside it.
// CHECK-LABEL: @erfc
func.func @erfc(%x: vector<16xf32>) -> vector<16xf32> {
  // CHECK: %[[SHARE:.*]] = arith.divf
  // CHECK: arith.mulf %[[SHARE]],
  // CHECK: llvm.call_intrinsic
  // CHECK-NOT: math.erfc
  // STRICT: math.erfc
  %y = math.erfc %x : vector<16xf32>
  func.return %y : vector<16xf32>
}

// What has no expansion stays, f16 and marked ops too.
// CHECK-LABEL: @others
func.func @others(%x: f32, %h: f16) -> (f32, f16, f32) {
  // CHECK: math.atan %x : f32
  // CHECK: math.exp %h : f16
  // CHECK: math.erf %x {library} : f32
  %0 = math.atan %x : f32
  %1 = math.exp %h : f16
  %2 = math.erf %x {library} : f32
  func.return %0, %1, %2 : f32, f16, f32
}

// x - trunc(x / y) y, exact under every policy; where a quotient has too many digits, the library is called.
// CHECK-LABEL: @remainder
// STRICT-LABEL: @remainder
func.func @remainder(%x: vector<8xf32>, %y: vector<8xf32>) -> vector<8xf32> {
  // CHECK: %[[Q:.*]] = arith.divf %{{.*}}, %{{.*}} : vector<8xf32>
  // CHECK: %[[N:.*]] = math.trunc %[[Q]] : vector<8xf32>
  // CHECK: %[[M:.*]] = arith.negf %[[N]] : vector<8xf32>
  // CHECK: math.fma %[[M]],
  // CHECK: %[[LARGE:.*]] = arith.cmpf uge, %[[Q]],
  // CHECK: vector.reduction <or>, %[[LARGE]] : vector<8xi1> into i1
  // CHECK: arith.remf %x, %y {library} : vector<8xf32>
  // STRICT: math.fma
  // STRICT: arith.remf %x, %y {library} : vector<8xf32>
  %r = arith.remf %x, %y : vector<8xf32>
  func.return %r : vector<8xf32>
}
