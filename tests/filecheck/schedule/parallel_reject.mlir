// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The iterations do not depend on each other, through a reduction neither.
// PAYLOAD: row_sums S(i, k)
  // expected-error@below {{parallel: iterations of loop 'k' depend on each other: S[0,k=0] updates S[0] and S[0,k=1] updates it}}
  sched.parallel %k

// -----

// Nor through a recurrence.
// PAYLOAD: wavefront D(i, j)
  // expected-error@below {{parallel: iterations of loop 'i' depend on each other: D[0,1] writes D[1,1] and D[1,0] reads it}}
  sched.parallel %i

// -----

// A buffer outside the loop is shared by all iterations.
// PAYLOAD: shared_element T(i)
  // expected-error@below {{parallel: iterations of loop 'i' depend on each other: T[0] writes T[0] and T[1] writes it}}
  sched.parallel %i

// -----

// The loop is serial.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 parallel/
  // expected-error@below {{parallel: loop 'i': it is parallel already}}
  sched.parallel %i
