// RUN: strata-opt %s --split-input-file --verify-diagnostics

// There is something to choose from.
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{there is nothing to choose from}}
  %v = sched.sample_categorical []
  transform.yield
}

// -----

// Each candidate has a probability.
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{2 candidates need as many probabilities, not 1}}
  %v = sched.sample_categorical [1, 2] probabilities [1.0]
  transform.yield
}

// -----

// Probabilities sum to 1.
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{the probabilities [0.5, 0.25] are negative or do not sum to 1}}
  %v = sched.sample_categorical [1, 2] probabilities [0.5, 0.25]
  transform.yield
}

// -----

// The decision is a position.
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{the decision 2 is not one of 2 positions}}
  %v = sched.sample_categorical [1, 2] decision 2
  transform.yield
}
