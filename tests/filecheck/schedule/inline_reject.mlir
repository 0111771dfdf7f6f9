// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is no reduction.
// PAYLOAD: matmul_doubled C()
  // expected-error@below {{inline: block 'C': it is a reduction, whose value takes a loop}}
  sched.inline %c

// -----

// It writes a temporary.
// PAYLOAD: double D()
  // expected-error@below {{inline: block 'D': 'D' is an argument of the function, not a temporary}}
  sched.inline %d

// -----

// Something reads it.
// PAYLOAD: double_twice T() s/%x = %T[i]/%x = %A[i]/
  // expected-error@below {{inline: block 'T': nothing reads 'T'}}
  sched.inline %t

// -----

// It alone writes the temporary.
// PAYLOAD: concatenation T()
  // expected-error@below {{inline: block 'T': 'T' is written by block 'U' as well}}
  sched.inline %t

// -----

// It writes one element for each of its axes.
// PAYLOAD: double_twice T() s/"T" : memref<10xf32>/"T" : memref<20xf32>/ \
//   s/%T[i] : memref<10xf32>/%T[i * 2] : memref<20xf32>/g
  // expected-error@below {{inline: block 'T': it does not write one element for each of its axes}}
  sched.inline %t

// -----

// Each axis indexes an element.
// PAYLOAD: last_of_each_row T()
  // expected-error@below {{inline: block 'T': its axis 'j' indexes no element}}
  sched.inline %t

// -----

// It writes all that is read.
// PAYLOAD: double_twice T() s/"T" : memref<10xf32>/"T" : memref<12xf32>/ \
//   s/%T[i] : memref<10xf32>/%T[i] : memref<12xf32>/g s/%x = %T[i]/%x = %T[i + 2]/
  // expected-error@below {{inline: block 'T': block 'D' reads elements of 'T' that it has not written in the iteration}}
  sched.inline %t

// -----

// What it reads is not overwritten before the last consumer has read.
// PAYLOAD: overwritten T()
  // expected-error@below {{inline: block 'T': block 'V' writes its input 'U' before the last consumer has read}}
  sched.inline %t
