// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Each part of the body gets a loop of its own.
// CHECK-LABEL: func.func @two_parts(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i" [[I_1:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I_1]]]
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @two_parts T(i) D(j)
  %both = sched.merge %i, %j
  %x, %y = sched.distribute %both after %t

// -----

// A loop inside a shared loop.
// CHECK-LABEL: func.func @inside(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @inside T(m, n) D(p, q)
  %r = sched.merge %m, %p
  %s = sched.merge %n, %q
  %x, %y = sched.distribute %s after %t
