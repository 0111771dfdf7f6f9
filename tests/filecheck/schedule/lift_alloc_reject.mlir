// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The buffer is a temporary.
// PAYLOAD: producer_consumer D(p, q)
  // expected-error@below {{lift_alloc: buffer 'D': it is an argument, not a temporary}}
  sched.lift_alloc "D"

// -----

// There is such a buffer.
// PAYLOAD: producer_consumer D(p, q)
  // expected-error@below {{lift_alloc: buffer 'U': there is no such buffer}}
  sched.lift_alloc "U"

// -----

// It lives inside the loop.
// PAYLOAD: producer_consumer T() D(p, q)
  sched.compute_at %t at %p
  // expected-error@below {{lift_alloc: buffer 'T': it does not live inside loop 'n'}}
  sched.lift_alloc "T" to %q

// -----

// It does not live there already.
// PAYLOAD: producer_consumer T() D(p, q)
  sched.compute_at %t at %p
  // expected-error@below {{lift_alloc: buffer 'T': it lives there already}}
  sched.lift_alloc "T" to %p

// -----

// Nor outside of all loops already.
// PAYLOAD: producer_consumer D(p, q)
  // expected-error@below {{lift_alloc: buffer 'T': it lives there already}}
  sched.lift_alloc "T"

// -----

// Iterations of a concurrent loop do not come to share it.
// PAYLOAD: producer_consumer T() D(p, q)
  sched.compute_at %t at %p
  sched.parallel %p
  // expected-error@below {{lift_alloc: iterations of loop 'm' depend on each other: T[0,0] writes T[0,0] and T[1,0] writes it}}
  sched.lift_alloc "T"
