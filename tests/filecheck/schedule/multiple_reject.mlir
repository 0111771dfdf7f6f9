// RUN: strata-opt %s --split-input-file --verify-diagnostics

// The factor is positive.
// PAYLOAD: script
  %v = sched.sample_categorical [1, 2] decision 1
  // expected-error@below {{the factor 0 is not positive}}
  %n = sched.multiple %v by 0
