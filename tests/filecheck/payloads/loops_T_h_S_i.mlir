transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %h = sched.get_loops %t : !sched.loop
  %s = sched.get_block %f "S"
  %i = sched.get_loops %s : !sched.loop
  // STEPS
  transform.yield
}
