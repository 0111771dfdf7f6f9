// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The block of that name.
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 unrolled {
// PAYLOAD: double_12 @named D(i)
  sched.unroll %i
