// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block reads the buffer.
// PAYLOAD: shifted S()
  // expected-error@below {{pad: block 'S': it does not read 'S'}}
  %p = sched.pad %s "S"

// -----

// Under a condition.
// PAYLOAD: shifted S() s/i - 1] where (i - 1 >= 0) else 0.0/i]/
  // expected-error@below {{pad: block 'S': it reads 'A' under no condition}}
  %p = sched.pad %s "A"

// -----

// Which fails at the edge only.
// PAYLOAD: shifted S() s/i - 1] where (i - 1 >= 0)/i] where (i mod 2 == 0)/
  // expected-error@below {{pad: block 'S': at i=1 it reads no element of 'A' though its index is inside}}
  %p = sched.pad %s "A"

// -----

// With one value beyond it.
// PAYLOAD: shifted S() \
//   s/0.0 : memref<8xf32>/0.0 : memref<8xf32>, %b = %A[i - 2] where (i - 2 >= 0) else 1.0 : memref<8xf32>/
  // expected-error@below {{pad: block 'S': it reads different values beyond the edge of 'A'}}
  %p = sched.pad %s "A"

// -----

// And it does not write the buffer.
// PAYLOAD: shifted S() s/%A: memref<8xf32>, // s/%A[/%S[/
  // expected-error@below {{pad: block 'S': it writes 'S' as well}}
  %p = sched.pad %s "S"
