// RUN: strata-opt %s -p 'te-to-loop,halve{block=D loop=i}' | filecheck %s
// RUN: strata-opt %s -p 'te-to-loop,apply-schedule{script="%s" verify=true}' | filecheck %s
// RUN: not strata-opt %s -p 'te-to-loop,halve{block=D loop=i},halve{block=D loop=i.1}' 2>&1 | filecheck %s --check-prefix=ODD

// CHECK: loop.for "i.0" {{.*}} = 2 {
// CHECK: loop.for "i.1" {{.*}} = 5 {
// ODD: halve.mlir:9:3: error: halve: loop 'i.1': its extent 5 is odd
func.func @twice(%A: tensor<10xf32>) -> tensor<10xf32> {
  %D = te.compute "D" [i = 10] (%a = %A[i] : tensor<10xf32>) -> tensor<10xf32> {
    %0 = arith.addf %a, %a : f32
    te.yield %0 : f32
  }
  func.return %D : tensor<10xf32>
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  %o, %n = sched.halve %i
  transform.yield
}
