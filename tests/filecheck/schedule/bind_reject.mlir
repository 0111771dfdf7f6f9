// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The iterations do not depend on each other.
// PAYLOAD: row_sums S(i, k)
  // expected-error@below {{bind: iterations of loop 'k' depend on each other: S[0,k=0] updates S[0] and S[0,k=1] updates it}}
  sched.bind %k to "thread_x"

// -----

// No loop around it has the same binding.
// PAYLOAD: double_4x6 D(i, j) s/"i" %i = 4/"i" %i = 4 thread_x/
  // expected-error@below {{bind: loop 'j': loop 'i' in the same nest is bound to thread_x already}}
  sched.bind %j to "thread_x"

// -----

// The loop is serial.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 parallel/
  // expected-error@below {{bind: loop 'i': it is parallel already}}
  sched.bind %i to "thread_x"
