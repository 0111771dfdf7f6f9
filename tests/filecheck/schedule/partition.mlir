// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The iterations below the position, then the rest, whose block is a copy.
// CHECK-LABEL: func.func @two_loops(
// CHECK-NEXT: loop.for "i.head" [[I_HEAD:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I_HEAD]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i.rest" [[I_REST:%\S+]] = 2 {
// CHECK-NEXT:   loop.block "D.1" [i = 10 at [[I_REST]] + 8]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: double @two_loops D(i)
  %h, %r = sched.partition %i at 8

// -----

// A part of one iteration keeps its loop.
// CHECK-LABEL: func.func @one_iteration(
// CHECK-NEXT: loop.for "i.head" [[I_HEAD:%\S+]] = 9 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I_HEAD]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i.rest" [[I_REST:%\S+]] = 1 {
// CHECK-NEXT:   loop.block "D.1" [i = 10 at 9]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: double @one_iteration D(i)
  %h, %r = sched.partition %i at 9

// -----

// The rest of a reduction accumulates.
// CHECK-LABEL: func.func @reduction(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "k.head" [[K_HEAD:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "S" [i = 4 at [[I]], reduce k = 10 at [[K_HEAD]]] combine [add]
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "k.rest" [[K_REST:%\S+]] = 2 {
// CHECK-NEXT:     loop.block "S.1" [i = 4 at [[I]], reduce k = 10 at [[K_REST]] + 8] combine [add] accumulate
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: row_sums @reduction S(i, k)
  %h, %r = sched.partition %k at 8
