// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is for templates of a search.
// PAYLOAD: matmul
// PAYLOAD: loops_C_mnk
  // expected-error@below {{auto: block 'C': it stands for choices that a search derives; tune the script as a template}}
  sched.auto %c
