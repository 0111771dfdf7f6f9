transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %e = sched.get_block %f "E"
  %z = sched.get_block %f "Z"
  %i, %d = sched.get_loops %z : !sched.loop, !sched.loop
  %r, %c = sched.get_loops %e : !sched.loop, !sched.loop
  // STEPS
  transform.yield
}
