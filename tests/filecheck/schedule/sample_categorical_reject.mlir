// RUN: strata-opt %s --split-input-file --verify-diagnostics

// There is something to choose from.
// PAYLOAD: script
  // expected-error@below {{there is nothing to choose from}}
  %v = sched.sample_categorical []

// -----

// Each candidate has a probability.
// PAYLOAD: script
  // expected-error@below {{2 candidates need as many probabilities, not 1}}
  %v = sched.sample_categorical [1, 2] probabilities [1.0]

// -----

// Probabilities sum to 1.
// PAYLOAD: script
  // expected-error@below {{the probabilities [0.5, 0.25] are negative or do not sum to 1}}
  %v = sched.sample_categorical [1, 2] probabilities [0.5, 0.25]

// -----

// The decision is a position.
// PAYLOAD: script
  // expected-error@below {{the decision 2 is not one of 2 positions}}
  %v = sched.sample_categorical [1, 2] decision 2
