// RUN: not strata-opt %s -p loop-to-low --split-input-file 2>&1 | filecheck %s
// RUN: not strata-opt %s --split-input-file -p 'loop-to-low{policy=loose}' 2>&1 | filecheck %s --check-prefix=POLICY
// POLICY: error: unknown policy 'loose' (there are strict, contract, fast)

// CHECK: error: loop 'i' is bound to thread_x, which this target does not have
func.func @f() {
  loop.for "i" %i = 4 thread_x {
  }
  func.return
}
// -----
// CHECK: error: loop 'j' is vectorized inside another vectorized loop
func.func @f() {
  loop.for "i" %i = 4 vectorized {
    loop.for "j" %j = 4 vectorized {
    }
  }
  func.return
}
