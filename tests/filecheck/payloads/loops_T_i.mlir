transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  // STEPS
  transform.yield
}
