// RUN: strata-opt %s --split-input-file --verify-diagnostics

// There is something to multiply.
// PAYLOAD: script
  // expected-error@below {{there is nothing to multiply}}
  %n = sched.product
