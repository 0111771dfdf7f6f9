// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// CHECK-LABEL: transform.named_sequence @schedule
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // CHECK-NEXT: %c = sched.get_block %f "C"
  // CHECK-NEXT: %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %c = sched.get_block %f "C"
  %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // CHECK-NEXT: %p0, %p1 = sched.sample_perfect_tile %m innermost 64 : !sched.param, !sched.param
  // CHECK-NEXT: %m0, %m1 = sched.split %m by [%p0, %p1] : !sched.loop, !sched.loop
  %p0, %p1 = sched.sample_perfect_tile %m innermost 64 : !sched.param, !sched.param
  %m0, %m1 = sched.split %m by [%p0, %p1] : !sched.loop, !sched.loop
  // CHECK-NEXT: %l0, %l1 = sched.split %l by [-1, 48] tail "guard" : !sched.loop, !sched.loop
  // CHECK-NEXT: sched.reorder %m0, %l0, %k, %m1, %l1
  %l0, %l1 = sched.split %l by [-1, 48] tail "guard" : !sched.loop, !sched.loop
  sched.reorder %m0, %l0, %k, %m1, %l1
  // CHECK-NEXT: sched.vectorize %l1
  // CHECK-NEXT: %b = sched.pack %c "B" tiles [1, 48]
  // CHECK-NEXT: sched.compute_at %b at %m0
  sched.vectorize %l1
  %b = sched.pack %c "B" tiles [1, 48]
  sched.compute_at %b at %m0
  // CHECK-NEXT: sched.sample_categorical [1, 4] probabilities [5.000000e-01 : f64, 5.000000e-01 : f64] decision 1
  %u = sched.sample_categorical [1, 4] probabilities [0.5, 0.5] decision 1
  transform.yield
}
