// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The producers of a block.
// CHECK-LABEL: func.func @producers(
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "D"
func.func @producers(%A: memref<12xf32>, %D: memref<12xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<12xf32>
  loop.for "i" %i = 12 {
    loop.block "T" [i = 12 at %i]
        (%x = %A[i] : memref<12xf32>) -> (%T[i] : memref<12xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 12 {
    loop.block "D" [i = 12 at %j]
        (%x = %T[i] : memref<12xf32>) -> (%D[i] : memref<12xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %b = sched.get_block %f "D"
  %back = sched.get_producers %b : !sched.block
  sched.inline %back
  transform.yield
}
