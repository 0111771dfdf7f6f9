// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The factor of a split is a multiple.
// CHECK-LABEL: func.func @multiple(
// CHECK-NEXT: loop.for "i.0" [[O:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "i.1" [[I:%\S+]] = 4 {
func.func @multiple(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 12 {
    loop.block "D" [i = 12 at %i]
        (%x = %A[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  %v = sched.sample_categorical [1, 2] decision 1
  %w = sched.sample_categorical [1, 2] decision 1
  %n = sched.multiple %v by 2
  %o, %p = sched.split %i by [-1, %n] : !sched.loop, !sched.loop
  transform.yield
}
