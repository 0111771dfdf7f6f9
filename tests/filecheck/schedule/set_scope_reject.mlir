// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block writes a temporary.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{set_scope: buffer 'D': it is an argument, not a temporary}}
  sched.set_scope %d "shared"

// -----

// There is such a scope.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{unknown scope 'moon' (there are global, shared, local, fragment)}}
  sched.set_scope %t "moon"
