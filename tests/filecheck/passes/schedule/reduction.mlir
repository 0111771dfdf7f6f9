// RUN: strata-opt %s -p 'decompose-reduction{block=C loop=m}' | filecheck %s --check-prefix=INIT
// RUN: strata-opt %s -p 'split{block=C loop=k factors=2,2},rfactor{block=C loop=k.0}' | filecheck %s --check-prefix=FACTOR

// The passes over reductions.
func.func @f(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %C = loop.alloc "C" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %C[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// INIT-LABEL: func.func @f(
// INIT: loop.alloc "C" : memref<6x8xf32>
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.block "C.init"
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.for "k" {{.*}} = 4 {
// INIT: loop.block "C"
// INIT: loop.for "m" {{.*}} = 6 {
// INIT: loop.for "n" {{.*}} = 8 {
// INIT: loop.block "D"
// INIT-NOT: loop.for

// FACTOR-LABEL: func.func @f(
// FACTOR: loop.alloc "C" : memref<6x8xf32>
// FACTOR: loop.for "m" {{.*}} = 6 {
// FACTOR: loop.for "n" {{.*}} = 8 {
// FACTOR: loop.alloc "C.rf" : memref<2x6x8xf32>
// FACTOR: loop.for "k.0" {{.*}} = 2 {
// FACTOR: loop.for "k.1" {{.*}} = 2 {
// FACTOR: loop.block "C.rf"
// FACTOR: loop.for "k.0" {{.*}} = 2 {
// FACTOR: loop.block "C"
// FACTOR: loop.for "m" {{.*}} = 6 {
// FACTOR: loop.for "n" {{.*}} = 8 {
// FACTOR: loop.block "D"
// FACTOR-NOT: loop.for
