// RUN: strata-opt %s --split-input-file --verify-diagnostics

// There is something to multiply.
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{there is nothing to multiply}}
  %n = sched.product
  transform.yield
}
