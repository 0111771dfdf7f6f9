// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The lifetime begins in an outer loop.
// CHECK-LABEL: func.func @to_a_loop(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<1x1xf32>
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][0, 0] : memref<1x1xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%t = [[T]][0, 0] : memref<1x1xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @to_a_loop T() D(p, q)
  sched.compute_at %t at %q
  sched.lift_alloc "T" to %p

// -----

// Or in the function.
// CHECK-LABEL: func.func @to_the_function(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<1x1xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][0, 0] : memref<1x1xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%t = [[T]][0, 0] : memref<1x1xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @to_the_function T() D(p, q)
  sched.compute_at %t at %q
  sched.lift_alloc "T"
