// A schedule of the workload matmul_512: recipes.gebp with mc=64, kc=256, nc=512, mr=8, nr=32, as its script prints.
//
//   strata explain matmul_512 --script examples/gebp_schedule.mlir

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %matmul = sched.get_block %f "matmul"
  %m, %n, %k = sched.get_loops %matmul : !sched.loop, !sched.loop, !sched.loop
  %m_1, %n_1, %k_1 = sched.get_loops %matmul : !sched.loop, !sched.loop, !sched.loop
  %m_2, %n_2, %k_2 = sched.get_loops %matmul : !sched.loop, !sched.loop, !sched.loop
  %n.0, %n.1, %n.2, %n.3 = sched.split %n by [-1, 16, 2, 16] : !sched.loop, !sched.loop, !sched.loop, !sched.loop
  %m.0, %m.1, %m.2 = sched.split %m by [-1, 8, 8] : !sched.loop, !sched.loop, !sched.loop
  %k.0, %k.1 = sched.split %k by [-1, 256] : !sched.loop, !sched.loop
  sched.reorder %n.0, %k.0, %m.0, %n.1, %m.1, %k.1, %m.2, %n.2, %n.3
  %B.pack = sched.pack %matmul "B" tiles [1, 32] order [1, 0, 2]
  sched.compute_at %B.pack at %k.0
  %n.0_1, %k.0_1, %ax0, %ax1, %ax2 = sched.get_loops %B.pack : !sched.loop, !sched.loop, !sched.loop, !sched.loop, !sched.loop
  %ax2.0, %ax2.1 = sched.split %ax2 by [-1, 16] : !sched.loop, !sched.loop
  sched.unroll %ax2.0
  sched.vectorize %ax2.1
  %A.pack = sched.pack %matmul "A" tiles [8, 1] order [0, 1, 2]
  sched.compute_at %A.pack at %m.0
  %n.0_2, %k.0_2, %m.0_1, %ax0_1, %ax1_1, %ax2_1 = sched.get_loops %A.pack : !sched.loop, !sched.loop, !sched.loop, !sched.loop, !sched.loop, !sched.loop
  %ax1.0, %ax1.1 = sched.split %ax1_1 by [-1, 16] : !sched.loop, !sched.loop
  sched.reorder %ax0_1, %ax1.0, %ax2_1, %ax1.1
  sched.unroll %ax2_1
  sched.vectorize %ax1.1
  sched.unroll %m.2
  sched.unroll %n.2
  sched.vectorize %n.3
  %matmul.init = sched.decompose_reduction %matmul at %k.1
  sched.prefetch %m.1 "matmul" ahead 1
  sched.prefetch %k.1 "B.pack" ahead 8
  transform.yield
}
