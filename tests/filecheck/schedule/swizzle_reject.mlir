// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block writes a temporary.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{swizzle: buffer 'D': it is an argument, not a temporary}}
  sched.swizzle %d width 4

// -----

// The last dimension is a multiple of the width.
// PAYLOAD: producer_consumer_6x10 T()
  // expected-error@below {{swizzle: buffer 'T': its last dimension is no multiple of the width 4}}
  sched.swizzle %t width 4

// -----

// There are two dimensions.
// PAYLOAD: producer_consumer_10 T() s/10/8/g
  // expected-error@below {{swizzle: buffer 'T': its last dimension is no multiple of the width 4}}
  sched.swizzle %t width 4
