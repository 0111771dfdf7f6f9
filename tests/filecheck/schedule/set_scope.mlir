// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The scope is the allocation's.
// CHECK-LABEL: func.func @shared(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" shared : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// PAYLOAD: producer_consumer @shared T()
  sched.set_scope %t "shared"

// -----

// Of several targets, all.
// CHECK-LABEL: func.func @both(
// CHECK-NEXT: loop.alloc "T" shared : memref
// CHECK-NEXT: loop.alloc "U" shared : memref
// PAYLOAD: two_targets @both T()
  sched.set_scope %t "shared"

