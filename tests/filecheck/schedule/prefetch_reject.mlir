// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The body touches the buffer.
// PAYLOAD: matmul_doubled C(m, n, k)
  // expected-error@below {{prefetch: loop 'k': its body does not touch 'D'}}
  sched.prefetch %k "D" ahead 2

// -----

// The loop that asks is inside the one that it asks for.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{prefetch: loop 'm': it is not inside loop 'k'}}
  sched.prefetch %k "B" ahead 1 over %m

// -----

// A loop is not inside itself.
// PAYLOAD: matmul C(m, n, k)
  // expected-error@below {{prefetch: loop 'k': it is not inside loop 'k'}}
  sched.prefetch %k "B" ahead 1 over %k

// -----

// The buffer is there in the next iteration too.
// PAYLOAD: matmul C(m, n, k)
  %pack = sched.cache_read %c "B" in "local"
  sched.compute_at %pack at %m
  // expected-error@below {{prefetch: loop 'm': 'B.local' lives in one iteration of it; lift_alloc first}}
  sched.prefetch %m "B.local" ahead 1 over %k

// -----

// The lanes of a vector run at once.
// PAYLOAD: matmul C(m, n, k)
  sched.vectorize %n
  // expected-error@below {{prefetch: loop 'n': it is vectorized: no iteration is later}}
  sched.prefetch %n "B" ahead 1 over %k
