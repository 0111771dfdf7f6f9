// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The decision is a position of one.
// PAYLOAD: stencil T()
  // expected-error@below {{sample_location: block 'T': the decision 1 is none of its 1 locations}}
  %at = sched.sample_location %t decision 1

// -----

// Other primitives want a loop.
// PAYLOAD: stencil T()
  %at = sched.sample_location %t decision -1
  // expected-error@below {{unroll: the location is no loop: the block stays, or is inlined}}
  sched.unroll %at
