// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A dependence would be reversed.
// PAYLOAD: wavefront D(i, j)
  // expected-error@below {{reorder: D[1,0] reads D[1,1] before D[0,1] has been written}}
  sched.reorder %j, %i

// -----

// The loops are in one nest.
// PAYLOAD: producer_consumer T(m, n) D(p, q)
  // expected-error@below {{reorder: loop 'm': it is not in one nest with loop 'n'}}
  sched.reorder %m, %q

// -----

// They are perfectly nested.
// PAYLOAD: row_of_doubles D(i, j)
  // expected-error@below {{reorder: loop 'j': it is not the only content of loop 'i', so they are not perfectly nested}}
  sched.reorder %j, %i

// -----

// Two handles on one loop are one loop.
// PAYLOAD: matmul C(m, n, k)
  %c2 = sched.get_block %f "C"
  %x, %y, %z = sched.get_loops %c2 : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{reorder: loop 'm': a loop is named twice}}
  sched.reorder %m, %x
