transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // STEPS
  transform.yield
}
