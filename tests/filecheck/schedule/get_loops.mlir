// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The loops around a block, those that a split has made among them.
// CHECK-LABEL: func.func @loops(
// CHECK-NEXT: loop.for "i.0" [[O:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I:%\S+]] = 4 unrolled {
// PAYLOAD: double_12 @loops D(i)
  %a, %b = sched.split %i by [-1, 4] : !sched.loop, !sched.loop
  %o, %n = sched.get_loops %d : !sched.loop, !sched.loop
  sched.unroll %n
