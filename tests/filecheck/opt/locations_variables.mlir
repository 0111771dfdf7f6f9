// RUN: strata-opt %s --print-debuginfo | filecheck %s
// RUN: strata-opt %s --print-debuginfo | strata-opt - --print-debuginfo | filecheck %s
// RUN: strata-opt %s | filecheck %s --check-prefix=PLAIN

// The location of a loop's variable is printed if it has one.
// CHECK: loop.for "i" %i loc("model.py":2:5) = 4 {
// CHECK: loop.for "j" %j = 8 {
// PLAIN: loop.for "i" %i = 4 {
func.func @f(%A: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i loc("model.py":2:5) = 4 {
    loop.for "j" %j = 8 {
      loop.block "A" [i = 4 at %i, j = 8 at %j] () -> (%A[i, j] : memref<4x8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
