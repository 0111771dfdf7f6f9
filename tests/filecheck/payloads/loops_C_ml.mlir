transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %l = sched.get_loops %c : !sched.loop, !sched.loop
  // STEPS
  transform.yield
}
