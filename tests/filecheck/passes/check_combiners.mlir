// RUN: strata-opt %s -p check-combiners | filecheck %s

// A combiner passes, and nothing changes.
// CHECK-LABEL: @argmax
// CHECK: combine (%v = -inf : f32
// PAYLOAD: te_argmax @argmax
