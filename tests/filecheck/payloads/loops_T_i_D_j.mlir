transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // STEPS
  transform.yield
}
