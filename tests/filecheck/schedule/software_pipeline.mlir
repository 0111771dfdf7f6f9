// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The loading runs one iteration before the use.
// CHECK-LABEL: func.func @load_early(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<2x3xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 9 {
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[T_I]] + [[I]], w.0 = 8 at [[I]], w.0.1 = 2 at [[I]] mod 2] where (-[[I]] + 7 >= 0)
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][w.0.1, i - w.0] : memref<2x3xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]] - 1, w.0 = 2 at ([[I]] + 1) mod 2] where ([[I]] - 1 >= 0)
// CHECK-NEXT:       (%t = [[T]][w.0, 0] : memref<2x3xf32>, %t_1 = [[T]][w.0, 1] : memref<2x3xf32>, %t_2 = [[T]][w.0, 2] : memref<2x3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @load_early T() S(i)
  sched.compute_at %t at %i
  sched.double_buffer %t
  %late = sched.software_pipeline %i stages [0, 1]

// -----

// A part may run two iterations late.
// CHECK-LABEL: func.func @late_store(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[I]]] where (-[[I]] + 9 >= 0)
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]] - 2] where ([[I]] - 2 >= 0)
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @late_store T(i) D(j)
  %x = sched.merge %i, %j
  %late = sched.software_pipeline %x stages [0, 2]
