// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is a reduction.
// PAYLOAD: double
// PAYLOAD: loops_D_i
  // expected-error@below {{rfactor: block 'D': it is not a reduction with an implicit init}}
  %p = sched.rfactor %d along %i

// -----

// Its init is implicit.
// PAYLOAD: row_sums
// PAYLOAD: loops_S_ik
  %init = sched.decompose_reduction %s at %k
  // expected-error@below {{rfactor: block 'S': it is not a reduction with an implicit init}}
  %p = sched.rfactor %s along %k

// -----

// The loop is around it.
// PAYLOAD: matmul_doubled
// PAYLOAD: script
  %c = sched.get_block %f "C"
  %d = sched.get_block %f "D"
  %m, %n = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{rfactor: loop 'm': it is not around block 'C'}}
  %p = sched.rfactor %c along %m

// -----

// The loop binds a reduce axis.
// PAYLOAD: matmul
// PAYLOAD: loops_C_mnk
  // expected-error@below {{rfactor: loop 'n': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %n

// -----

// And only that.
// PAYLOAD: matmul
// PAYLOAD: loops_C_mnk
  %nk = sched.fuse %n, %k
  // expected-error@below {{rfactor: loop 'n_k': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %nk
