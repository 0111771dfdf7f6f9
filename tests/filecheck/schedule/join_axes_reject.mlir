// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// Each loop binds one axis.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// The axes are of one kind.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %n, %k
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// Nothing else is bound by the loop's parts.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %m, %n
  %y, %z = sched.split %x by [-1, 16] : !sched.loop, !sched.loop
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}

// -----

// The loop runs over all of them.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %x = sched.fuse %m, %n
  %y, %z = sched.partition %x at 40
  // expected-error@below {{join_axes: block 'C': no loop runs over several of its axes together}}
  sched.join_axes %c
  transform.yield
}
