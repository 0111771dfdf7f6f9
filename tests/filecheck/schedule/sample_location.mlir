// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The first of the loops around all consumers.
// CHECK-LABEL: func.func @at_a_loop(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<3xf32>
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I]] + [[T_I]], w.0 = 8 at [[I]]]
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][i - w.0] : memref<3xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][0] : memref<3xf32>, %t_1 = [[T]][1] : memref<3xf32>, %t_2 = [[T]][2] : memref<3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @at_a_loop T()
  %at = sched.sample_location %t decision 0
  sched.compute_at %t at %at

// -----

// Minus one leaves the block where it is.
// CHECK-LABEL: func.func @stays(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "h" [[H:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[H]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>, %t_1 = [[T]][i + 1] : memref<10xf32>, %t_2 = [[T]][i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @stays T()
  %at = sched.sample_location %t decision -1
  sched.compute_at %t at %at

// -----

// Minus two inlines it.
// CHECK-LABEL: func.func @inlined(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>, %a_1 = %A[i + 1] : memref<10xf32>, %a_2 = %A[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
// PAYLOAD: stencil @inlined T()
  %at = sched.sample_location %t decision -2
  sched.compute_at %t at %at
