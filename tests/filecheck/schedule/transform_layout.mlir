// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Every access goes through the map.
// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<8x6xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][n, m] : memref<8x6xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][n, m] : memref<8x6xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @transposed T()
  sched.transform_layout %t "T" by affine_map<(i, j) -> (j, i)>

// -----

// Blocks of four columns, one after the other.
// CHECK-LABEL: func.func @blocked(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<2x6x4xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][n floordiv 4, m, n mod 4] : memref<2x6x4xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][n floordiv 4, m, n mod 4] : memref<2x6x4xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @blocked T()
  sched.transform_layout %t "T" by affine_map<(i, j) -> (j floordiv 4, i, j mod 4)>

// -----

// Elements may share a place when the first has had its last use.
// CHECK-LABEL: func.func @rolling_window(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<3xf32>
// CHECK-NEXT: loop.for "h" [[H:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[H]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i mod 3] : memref<3xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[H]] - 2] where ([[H]] - 2 >= 0)
// CHECK-NEXT:       (%t = [[T]][i mod 3] : memref<3xf32>, %t_1 = [[T]][(i + 1) mod 3] : memref<3xf32>, %t_2 = [[T]][(i + 2) mod 3] : memref<3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @rolling_window T(h) S(i)
  %x = sched.merge %h, %i shift 2
  sched.transform_layout %t "T" by affine_map<(i) -> (i mod 3)>
