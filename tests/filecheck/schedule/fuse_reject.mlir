// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The loops are next to each other.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{fuse: loop 'k': it is not the only content of loop 'm', so they are not perfectly nested}}
  %x = sched.fuse %m, %k

// -----

// They are named outermost first.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{fuse: loop 'm': it is not the only content of loop 'n', so they are not perfectly nested}}
  %x = sched.fuse %n, %m

// -----

// Each is the only content of the one before.
// PAYLOAD: row_of_doubles D(i, j)
  // expected-error@below {{fuse: loop 'j': it is not the only content of loop 'i', so they are not perfectly nested}}
  %x = sched.fuse %i, %j

// -----

// All are serial.
// PAYLOAD: double_4x6 D(i, j) s/"j" %j = 6/"j" %j = 6 vectorized/
  // expected-error@below {{fuse: loop 'j': it is vectorized already, not serial}}
  %x = sched.fuse %i, %j
