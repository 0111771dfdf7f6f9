// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is a reduction.
// PAYLOAD: double D(i)
  // expected-error@below {{rfactor: block 'D': it is not a reduction with an implicit init}}
  %p = sched.rfactor %d along %i

// -----

// Its init is implicit.
// PAYLOAD: row_sums S(i, k)
  %init = sched.decompose_reduction %s at %k
  // expected-error@below {{rfactor: block 'S': it is not a reduction with an implicit init}}
  %p = sched.rfactor %s along %k

// -----

// The loop is around it.
// PAYLOAD: matmul_doubled C() D(m, n)
  // expected-error@below {{rfactor: loop 'm': it is not around block 'C'}}
  %p = sched.rfactor %c along %m

// -----

// The loop binds a reduce axis.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{rfactor: loop 'n': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %n

// -----

// And only that.
// PAYLOAD: matmul C(m, n, k)
  %nk = sched.fuse %n, %k
  // expected-error@below {{rfactor: loop 'n_k': it does not bind reduce axes, and only those, of block 'C'}}
  %p = sched.rfactor %c along %nk
