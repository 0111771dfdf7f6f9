transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %d = sched.get_block %f "D"
  %p, %q = sched.get_loops %d : !sched.loop, !sched.loop
  // STEPS
  transform.yield
}
