transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %C = sched.get_block %f "C"
  %i, %j, %k = sched.get_loops %C : !sched.loop, !sched.loop, !sched.loop
  %k.0, %k.1 = sched.split %k by [-1, 4] : !sched.loop, !sched.loop
  sched.reorder %i, %k.0, %j, %k.1
  // STEPS
  transform.yield
}
