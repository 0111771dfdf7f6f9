// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The consumer takes a row when that is finished; the buffer shrinks to it.
// CHECK-LABEL: func.func @row(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[C:%\S+]] = loop.alloc "C" : memref<1x8xf32>
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C]][0, n] : memref<1x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "D.n" [[D_N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[D_N]]]
// CHECK-NEXT:         (%c = [[C]][0, n] : memref<1x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul_doubled @row C(m, n, k) D()
  sched.reverse_compute_at %d at %m

// -----

// Or an element.
// CHECK-LABEL: func.func @element(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     [[C:%\S+]] = loop.alloc "C" : memref<1x1xf32>
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C]][0, 0] : memref<1x1xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%c = [[C]][0, 0] : memref<1x1xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul_doubled @element C(m, n, k) D()
  sched.reverse_compute_at %d at %n

// -----

// Or a tile; a guard cuts the last.
// CHECK-LABEL: func.func @tile(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 3 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<4xf32>
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I_0]] * 4 + [[I_1]]] where ([[I_0]] * -4 - [[I_1]] + 9 >= 0)
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][i mod 4] : memref<4xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "D" [i = 10 at [[I_0]] * 4 + [[I]]] where ([[I_0]] * -4 - [[I]] + 9 >= 0)
// CHECK-NEXT:         (%t = [[T]][i mod 4] : memref<4xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @tile T(i) D()
  %o, %n = sched.split %i by [-1, 4] : !sched.loop, !sched.loop
  sched.reverse_compute_at %d at %o

// -----

// Inside the reduction it runs in the last iteration, when the sum is finished.
// CHECK-LABEL: func.func @last_round(
// CHECK:       loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:    loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:      loop.block "C"
// CHECK:           loop.block "D" [m = 6 at %m, n = 8 at [[N]]] where ([[K]] - 3 == 0)
// CHECK-NEXT:          (%c = %C[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul_doubled @last_round C(m, n, k) D()
  sched.reorder %k, %n
  sched.reverse_compute_at %d at %n
