// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The decision is what the loop is split by.
// CHECK-LABEL: func.func @decided(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "D" [i = 12 at [[I_0]] * 3 + [[I_1]]]
// CHECK-NEXT:         (%a = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>)
// PAYLOAD: double_12 @decided D(i)
  %t:2 = sched.sample_perfect_tile %i innermost 4 decision [4, 3] : !sched.param, !sched.param
  %o, %n = sched.split %i by [%t#0, %t#1] : !sched.loop, !sched.loop

// -----

// Without a decision it is drawn; of a prime only one is left.
// CHECK-LABEL: func.func @open_choice(
// CHECK-NEXT: loop.for "i.0" [[I_0:%\S+]] = 7 {
// CHECK-NEXT:   loop.for "i.1" [[I_1:%\S+]] = 1 {
// CHECK-NEXT:     loop.block "D" [i = 7 at [[I_0]]]
// CHECK-NEXT:         (%a = %A[i] : memref<7xf32>) -> (%D[i] : memref<7xf32>)
// PAYLOAD: double @open_choice D(i) s/10/7/g
  %t:2 = sched.sample_perfect_tile %i innermost 4 : !sched.param, !sched.param
  %o, %n = sched.split %i by [%t#0, %t#1] : !sched.loop, !sched.loop
