transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %h = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  // STEPS
  transform.yield
}
