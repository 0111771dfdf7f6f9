// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The block of that name.
// CHECK-LABEL: func.func @named(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 unrolled {
func.func @named(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
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
  sched.unroll %i
  transform.yield
}
