// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The decision is a position.
// CHECK-LABEL: func.func @decided(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "D" [i = 12 at [[I_0]] * 4 + [[I_1]]]
// CHECK-NEXT:         (%a = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>)
// PAYLOAD: double_12 @decided D(i)
  %t = sched.sample_categorical [2, 3, 12] probabilities [0.5, 0.25, 0.25] decision 1
  %u = sched.sample_categorical [4] probabilities [1.0]
  %o, %n = sched.split %i by [%t, %u] : !sched.loop, !sched.loop
