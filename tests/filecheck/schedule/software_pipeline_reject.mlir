// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// There is one stage for each part of the body.
// PAYLOAD: producer_consumer_fused T(i)
  // expected-error@below {{software_pipeline: loop 'i': 3 stages do not fit the 2 parts of its body}}
  %late = sched.software_pipeline %i stages [0, 1, 1]

// -----

// A buffer that lives in one iteration is used in one stage.
// PAYLOAD: stencil T() S(i)
  sched.compute_at %t at %i
  // expected-error@below {{software_pipeline: loop 'i': buffer 'T' lives in one iteration and is used in several stages; double_buffer first}}
  %late = sched.software_pipeline %i stages [0, 1]

// -----

// No dependence is reversed.
// PAYLOAD: producer_consumer_fused T(i)
  // expected-error@below {{software_pipeline: D[0] reads T[0] before T[0] has been written}}
  %late = sched.software_pipeline %i stages [1, 0]

// -----

// The loop is serial.
// PAYLOAD: producer_consumer_10 T(i) s/%i = 10/%i = 10 parallel/
  // expected-error@below {{software_pipeline: loop 'i': it is parallel already, not serial}}
  %late = sched.software_pipeline %i stages [0]
