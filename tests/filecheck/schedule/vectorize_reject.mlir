// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The iterations do not depend on each other, through a reduction neither.
// PAYLOAD: row_sums S(i, k)
  // expected-error@below {{vectorize: iterations of loop 'k' depend on each other: S[0,k=0] updates S[0] and S[0,k=1] updates it}}
  sched.vectorize %k

// -----

// Nor through a recurrence.
// PAYLOAD: wavefront D(i, j)
  // expected-error@below {{vectorize: iterations of loop 'i' depend on each other: D[0,1] writes D[1,1] and D[1,0] reads it}}
  sched.vectorize %i

// -----

// No loop around it is vectorized.
// PAYLOAD: double_4x6 D(i, j) s/"i" %i = 4/"i" %i = 4 vectorized/
  // expected-error@below {{vectorize: loop 'j': loop 'i' in the same nest is vectorized already}}
  sched.vectorize %j

// -----

// No loop inside it is vectorized.
// PAYLOAD: double_4x6 D(i, j) s/"j" %j = 6/"j" %j = 6 vectorized/
  // expected-error@below {{vectorize: loop 'i': loop 'j' in the same nest is vectorized already}}
  sched.vectorize %i

// -----

// The loop is serial.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 unrolled/
  // expected-error@below {{vectorize: loop 'i': it is unrolled already}}
  sched.vectorize %i
