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
// -----
// CHECK: error: loop 'j' is parallel inside the parallel loop 'i', and not perfectly nested in it
func.func @f() {
  loop.for "i" %i = 4 parallel {
    loop.for "k" %k = 4 {
      loop.for "j" %j = 4 parallel {
      }
    }
  }
  func.return
}
// -----
// CHECK: error: loop 'j' prefetches for loop 'k', which is not around it
func.func @f(%A: memref<4xf32>) {
  loop.for "k.0" %k = 4 {
    loop.for "j" %j = 4 {
    } attributes {prefetch = {A = [1 : i64, "k"]}}
  }
  func.return
}
// -----
// CHECK: error: loop 'j' prefetches for loop 'k', which runs at once
func.func @f(%A: memref<4xf32>) {
  loop.for "k" %k = 4 vectorized {
    loop.for "j" %j = 4 {
    } attributes {prefetch = {A = [1 : i64, "k"]}}
  }
  func.return
}
// -----
// CHECK: error: the attribute prefetch of loop 'j' is not a distance or [distance, loop]
func.func @f(%A: memref<4xf32>) {
  loop.for "j" %j = 4 {
  } attributes {prefetch = {A = "soon"}}
  func.return
}
// -----
// CHECK: error: loop 'i' is to write 'A' past the caches, but it writes 'B' and 'C'
func.func @f(%A: memref<4xf32>, %B: memref<4xf32>, %C: memref<4xf32>) {
  loop.for "i" %i = 4 {
    loop.block "B" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%B[i] : memref<4xf32>) {
      loop.yield %a : f32
    }
    loop.block "C" [i = 4 at %i] (%a = %A[i] : memref<4xf32>) -> (%C[i] : memref<4xf32>) {
      loop.yield %a : f32
    }
  } attributes {nontemporal = "A"}
  func.return
}
// -----
// CHECK: error: loop 'i' is to write 'A' past the caches, but it writes nothing
func.func @f(%A: memref<4xf32>) {
  loop.for "i" %i = 4 {
  } attributes {nontemporal = "A"}
  func.return
}
// -----
// CHECK: error: the attribute nontemporal of loop 'i' is not the name of a buffer
func.func @f(%A: memref<4xf32>) {
  loop.for "i" %i = 4 {
  } attributes {nontemporal}
  func.return
}
