// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The block of that name.
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 unrolled {
// PAYLOAD: double_12 @named

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  sched.unroll %i
  transform.yield
}
