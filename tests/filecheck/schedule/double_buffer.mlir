// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Even and odd iterations use a half each.
// CHECK-LABEL: func.func @two_halves(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<2x3xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I]] + [[T_I]], w.0 = 8 at [[I]], w.0.1 = 2 at [[I]] mod 2]
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][w.0.1, i - w.0] : memref<2x3xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]], w.0 = 2 at [[I]] mod 2]
// CHECK-NEXT:       (%t = [[T]][w.0, 0] : memref<2x3xf32>, %t_1 = [[T]][w.0, 1] : memref<2x3xf32>, %t_2 = [[T]][w.0, 2] : memref<2x3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @two_halves T() S(i)
  sched.compute_at %t at %i
  sched.double_buffer %t

// -----

// Three copies for fetches two iterations ahead.
// CHECK-LABEL: func.func @three(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<3x3xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I]] + [[T_I]], w.0 = 8 at [[I]], w.0.1 = 3 at [[I]] mod 3]
// PAYLOAD: stencil @three T() S(i)
  sched.compute_at %t at %i
  sched.double_buffer %t copies 3
