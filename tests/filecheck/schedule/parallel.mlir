// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The iterations run on several threads.
// CHECK-LABEL: func.func @marked(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 parallel {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @marked C(m, n, k)
  sched.parallel %m

// -----

// A buffer that lives in one iteration is private to it.
// CHECK-LABEL: func.func @private(
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 10 parallel {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<1xf32>
// CHECK-NEXT:   loop.block "T" [i = 10 at [[J]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][0] : memref<1xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "D" [i = 10 at [[J]]]
// CHECK-NEXT:       (%t = [[T]][0] : memref<1xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @private T() D(j)
  sched.compute_at %t at %j
  sched.parallel %j
