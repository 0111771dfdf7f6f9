transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i, %j = sched.get_loops %d : !sched.loop, !sched.loop
  // STEPS
  transform.yield
}
