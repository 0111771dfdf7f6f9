// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// A factor that is left open is inferred; a guard holds back what lies beyond the extent.
// CHECK-LABEL: func.func @inferred(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "D" [i = 10 at [[I_0]] * 4 + [[I_1]]] where ([[I_0]] * -4 - [[I_1]] + 9 >= 0)
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// PAYLOAD: double @inferred D(i)
  %o, %n = sched.split %i by [-1, 4] : !sched.loop, !sched.loop

// -----

// Factors that divide the extent need no guard.
// CHECK-LABEL: func.func @exact(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 2 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 2 {
// CHECK-NEXT:     loop.for "i.2" [[I_2:%\S+]] = 3 {
// CHECK-NEXT:       loop.block "D" [i = 12 at [[I_0]] * 6 + [[I_1]] * 3 + [[I_2]]]
// CHECK-NEXT:           (%a = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>)
// PAYLOAD: double_12 @exact D(i)
  %a, %b, %c = sched.split %i by [2, -1, 3] : !sched.loop, !sched.loop, !sched.loop

// -----

// The remainder becomes a nest of its own.
// CHECK-LABEL: func.func @partition(
// CHECK-NEXT: loop.for "i.head.0" [[I_HEAD_0:%\S+]] = 2 {
// CHECK-NEXT:   loop.for "i.head.1" [[I_HEAD_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "D" [i = 10 at [[I_HEAD_0]] * 4 + [[I_HEAD_1]]]
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i.rest" [[I_REST:%\S+]] = 2 {
// CHECK-NEXT:   loop.block "D.1" [i = 10 at [[I_REST]] + 8]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: double @partition D(i)
  %o, %n = sched.split %i by [-1, 4] tail "partition" : !sched.loop, !sched.loop

// -----

// The producer runs over into a padded temporary and reads no more than there is.
// CHECK-LABEL: func.func @pad(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<12xf32>
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "T" [i = 12 at [[I_0]] * 4 + [[I_1]]]
// CHECK-NEXT:         (%a = %A[i] where (-i + 9 >= 0) else 0.0 : memref<10xf32>) -> ([[T]][i] : memref<12xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[J]]]
// CHECK-NEXT:       (%t = [[T]][i] : memref<12xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @pad T(i)
  %o, %n = sched.split %i by [-1, 4] tail "pad" : !sched.loop, !sched.loop

// -----

// A loop of a reduction is split like any other.
// CHECK-LABEL: func.func @reduction(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "k.0" [[K_0:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "k.1" [[K_1:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "S" [i = 4 at [[I]], reduce k = 10 at [[K_0]] * 4 + [[K_1]]] where ([[K_0]] * -4 - [[K_1]] + 9 >= 0) combine [add]
// CHECK-NEXT:           (%a = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>)
// PAYLOAD: row_sums @reduction S(i, k)
  %o, %n = sched.split %k by [-1, 4] : !sched.loop, !sched.loop

// -----

// Factors may be parameters.
// CHECK-LABEL: func.func @parameters(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "D" [i = 12 at [[I_0]] * 4 + [[I_1]]]
// CHECK-NEXT:         (%a = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>)
// PAYLOAD: double_12 @parameters D(i)
  %t:2 = sched.sample_perfect_tile %i innermost 4 decision [3, 4] : !sched.param, !sched.param
  %o, %n = sched.split %i by [%t#0, %t#1] : !sched.loop, !sched.loop
