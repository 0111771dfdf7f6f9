// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// Each loop binds one axis.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c

// -----

// The axes are of one kind.
// PAYLOAD: matmul C(m, n, k)
  %x = sched.fuse %n, %k
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c

// -----

// Nothing else is bound by the loop's parts.
// PAYLOAD: matmul C(m, n, k)
  %x = sched.fuse %m, %n
  %y, %z = sched.split %x by [-1, 16] : !sched.loop, !sched.loop
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c

// -----

// The loop runs over all of them.
// PAYLOAD: matmul C(m, n, k)
  %x = sched.fuse %m, %n
  %y, %z = sched.partition %x at 40
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
