// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// Two elements that live at the same time do not share a place.
// PAYLOAD: stencil T(h) S(i)
  %x = sched.merge %h, %i shift 2
  // expected-error@below {{transform_layout: buffer 'T': T[2] writes T[2] to the place of T[0] before S[0] has used that}}
  sched.transform_layout %t "T" by affine_map<(i) -> (i mod 2)>

// -----

// The buffer is a temporary.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{transform_layout: buffer 'D': it is an argument, not a temporary}}
  sched.transform_layout %d "D" by affine_map<(i, j) -> (j, i)>

// -----

// There is such a buffer.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{transform_layout: buffer 'U': there is no such buffer}}
  sched.transform_layout %d "U" by affine_map<(i, j) -> (j, i)>

// -----

// The block touches it.
// PAYLOAD: two_consumers E() s/%T[i] : memref<10xf32>) -> (%E/%A[i] : memref<10xf32>) -> (%E/
  // expected-error@below {{transform_layout: buffer 'T': block 'E' does not touch it}}
  sched.transform_layout %e "T" by affine_map<(i) -> (i + 1)>

// -----

// The map has a dimension for each of the buffer's.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{transform_layout: buffer 'T': the layout is of 1 dimensions, the buffer has 2}}
  sched.transform_layout %t "T" by affine_map<(i) -> (i)>

// -----

// No place is negative.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{transform_layout: buffer 'T': the layout has negative places}}
  sched.transform_layout %t "T" by affine_map<(i, j) -> (i - 1, j)>
