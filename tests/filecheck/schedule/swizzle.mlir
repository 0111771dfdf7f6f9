// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Columns are rotated by the row, in groups of four.
// CHECK-LABEL: func.func @rotated(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m, (m + n) mod 4 + (n floordiv 4) * 4] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, (m + n) mod 4 + (n floordiv 4) * 4] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @rotated T()
  sched.swizzle %t width 4
