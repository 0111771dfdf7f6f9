// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The product of the decision is the extent.
// PAYLOAD: double D(i)
  // expected-error@below {{sample_perfect_tile: loop 'i': the decision [4, 3] is no perfect tile of its extent 10}}
  %t:2 = sched.sample_perfect_tile %i innermost 4 decision [4, 3] : !sched.param, !sched.param

// -----

// The extent has such factors.
// PAYLOAD: double D(i) s/10/7/g
  // expected-error@below {{sample_perfect_tile: loop 'i': its extent 7 has no perfect tile with an innermost factor up to 4}}
  %t = sched.sample_perfect_tile %i innermost 4 : !sched.param
