// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The factor of a split is a multiple.
// CHECK-LABEL: func.func @multiple(
// CHECK-NEXT: loop.for "i.0" [[O:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I:%\S+]] = 4 {
// PAYLOAD: double_12 @multiple D(i)
  %v = sched.sample_categorical [1, 2] decision 1
  %w = sched.sample_categorical [1, 2] decision 1
  %n = sched.multiple %v by 2
  %o, %p = sched.split %i by [-1, %n] : !sched.loop, !sched.loop
