// A schedule of examples/mm_exp_mm.mlir: both multiplications tiled, exp computed on each finished tile of the first,
// which the second multiplication consumes at once. The width of the tiles is an open choice.
//
//   strata-opt examples/mm_exp_mm.mlir \
//     -p 'te-to-loop,apply-schedule{script="examples/walk_schedule.mlir" seed=1 verify=true}'

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %T = sched.get_block %f "T"
  %X = sched.get_block %f "X"
  %C = sched.get_block %f "C"

  // T[m, l] += A[m, k] * B[k, l], in tiles.
  %m, %l, %k = sched.get_loops %T : !sched.loop, !sched.loop, !sched.loop
  %m.0, %m.1 = sched.split %m by [-1, 8] : !sched.loop, !sched.loop
  %tiles, %width = sched.sample_perfect_tile %l innermost 24 : !sched.param, !sched.param
  %l.0, %l.1 = sched.split %l by [%tiles, %width] : !sched.loop, !sched.loop
  sched.reorder %m.0, %l.0, %m.1, %k, %l.1
  sched.reverse_compute_at %X at %l.0

  // C[m, n] += X[m, l] * E[l, n], in the same tiles.
  %m_c, %n, %l_c = sched.get_loops %C : !sched.loop, !sched.loop, !sched.loop
  %m.0_c, %m.1_c = sched.split %m_c by [-1, 8] : !sched.loop, !sched.loop
  %l.0_c, %l.1_c = sched.split %l_c by [%tiles, %width] : !sched.loop, !sched.loop
  sched.reorder %m.0_c, %l.0_c, %m.1_c, %l.1_c, %n

  // The two share the loops over tiles.
  %rows = sched.merge %m.0, %m.0_c
  %columns = sched.merge %l.0, %l.0_c
  sched.vectorize %l.1
  sched.vectorize %n
  sched.parallel %rows
  transform.yield
}
