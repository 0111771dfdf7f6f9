// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is a reduction.
// PAYLOAD: double

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  // expected-error@below {{rfactor: block 'D': it is not a reduction with an implicit init}}
  %p = sched.rfactor %d along %i
  transform.yield
}

// -----

// Its init is implicit.
// PAYLOAD: row_sums

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %i, %k = sched.get_loops %s : !sched.loop, !sched.loop
  %init = sched.decompose_reduction %s at %k
  // expected-error@below {{rfactor: block 'S': it is not a reduction with an implicit init}}
  %p = sched.rfactor %s along %k
  transform.yield
}

// -----

// The loop is around it.
// PAYLOAD: matmul_doubled

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %d = sched.get_block %f "D"
  %m, %n = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{rfactor: loop 'm': it is not around block 'C'}}
  %p = sched.rfactor %c along %m
  transform.yield
}

// -----

// The loop binds a reduce axis.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{rfactor: loop 'n': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %n
  transform.yield
}

// -----

// And only that.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %nk = sched.fuse %n, %k
  // expected-error@below {{rfactor: loop 'n_k': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %nk
  transform.yield
}
