// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The factor of a split is a product.
// CHECK-LABEL: func.func @product(
// CHECK-NEXT: loop.for "i.0" [[O:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I:%\S+]] = 4 {
// PAYLOAD: double_12 @product D(i)
  %v = sched.sample_categorical [1, 2] decision 1
  %w = sched.sample_categorical [1, 2] decision 1
  %n = sched.product %v, %w
  %o, %p = sched.split %i by [-1, %n] : !sched.loop, !sched.loop
