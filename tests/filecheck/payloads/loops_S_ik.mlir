transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %i, %k = sched.get_loops %s : !sched.loop, !sched.loop
  // STEPS
  transform.yield
}
