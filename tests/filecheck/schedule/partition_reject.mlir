// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The position is inside the extent: at its end the rest would be empty.
// PAYLOAD: double D(i)
  // expected-error@below {{partition: loop 'i': position 10 is not inside its extent 10}}
  %h, %r = sched.partition %i at 10

// -----

// At zero the head would be empty.
// PAYLOAD: double D(i)
  // expected-error@below {{partition: loop 'i': position 0 is not inside its extent 10}}
  %h, %r = sched.partition %i at 0

// -----

// Only a serial loop is cut.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 vectorized/
  // expected-error@below {{partition: loop 'i': it is vectorized already, not serial}}
  %h, %r = sched.partition %i at 5

// -----

// A loop that binds spatial and reduce axes alike leaves the init in doubt.
// PAYLOAD: row_sums S(i, k)
  %x = sched.fuse %i, %k
  // expected-error@below {{partition: loop 'i_k': it binds spatial and reduce axes of block 'S' alike; decompose_reduction first}}
  %h, %r = sched.partition %x at 5
