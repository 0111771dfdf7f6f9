// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The table's producer cannot move to where only some of its rows are read.
// PAYLOAD: gather E(r, c) Z(i, d)
  // expected-error@below {{compute_at: block 'E': block 'Z' gathers from 'E': which elements it reads depends on data}}
  sched.compute_at %e at %i

// -----

// Nor can the gather move to where only some rows are finished.
// PAYLOAD: gather E(r, c) Z(i, d)
  // expected-error@below {{reverse_compute_at: block 'Z': block 'Z' gathers from 'E': which elements it reads depends on data}}
  sched.reverse_compute_at %z at %r

// -----

// The table's producer cannot be inlined into a gather.
// PAYLOAD: gather E(r, c) Z(i, d)
  // expected-error@below {{inline: block 'E': block 'Z' gathers from 'E': which elements it reads depends on data}}
  sched.inline %e

// -----

// A window of the table has no bounds.
// PAYLOAD: gather E(r, c) Z(i, d)
  // expected-error@below {{stage: loop 'i': block 'Z' gathers from 'E': which elements it reads depends on data}}
  %in, %out = sched.stage %i "E" in "local"

// -----

// The rows of the table are read before all of them are finished.
// PAYLOAD: gather E(r, c) Z(i, d)
  // expected-error@below {{merge: Z[0,0] reads E[1,0] before E[1,0] has been written}}
  %m = sched.merge %r, %i
