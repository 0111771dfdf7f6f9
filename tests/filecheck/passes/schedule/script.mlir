// RUN: strata-opt %s -p te-to-loop,apply-schedule | filecheck %s
// RUN: strata-opt %s -p 'te-to-loop,apply-schedule{seed=1}' | filecheck %s --check-prefix=SEED
// RUN: strata-opt %s -p 'te-to-loop,apply-schedule{function=twice verify=true}' | filecheck %s
// RUN: strata-opt %s -p 'te-to-loop,apply-schedule{script="%s"}' | filecheck %s

// The script is applied to the function below te as well, and is gone afterwards; the seed draws what is open.
// CHECK-LABEL: func.func @twice(
// CHECK: loop.for "i.0" {{.*}} = 32 {
// CHECK: loop.for "i.1" {{.*}} = 2 vectorized {
// CHECK-NOT: transform.named_sequence

// SEED-LABEL: func.func @twice(
// SEED: loop.for "i.0" {{.*}} = 8 {
// SEED: loop.for "i.1" {{.*}} = 8 vectorized {
// SEED-NOT: transform.named_sequence
func.func @twice(%A: tensor<64xf32>) -> tensor<64xf32> {
  %D = te.compute "D" [i = 64] (%a = %A[i] : tensor<64xf32>) -> tensor<64xf32> {
    %0 = arith.addf %a, %a : f32
    te.yield %0 : f32
  }
  func.return %D : tensor<64xf32>
}

// PAYLOAD: script D(i)
  %t:2 = sched.sample_perfect_tile %i innermost 16 : !sched.param, !sched.param
  %o, %n = sched.split %i by [%t#0, %t#1] : !sched.loop, !sched.loop
  sched.vectorize %n
