// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// There is such a block.
// PAYLOAD: double_12
// PAYLOAD: script
  // expected-error@below {{get_block: block 'X': there is none (there are D)}}
  %x = sched.get_block %f "X"
