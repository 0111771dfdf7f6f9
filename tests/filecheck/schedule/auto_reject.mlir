// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is for templates of a search.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{auto: block 'C': it stands for choices that a search derives; tune the script as a template}}
  sched.auto %c
