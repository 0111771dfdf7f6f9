// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Blocks are found by what they read and write.
// CHECK-LABEL: func.func @neighbours(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
func.func @neighbours(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "T" [m = 6 at %m, n = 8 at %n]
          (%x = %A[m, n] : memref<6x8xf32>) -> (%T[m, n] : memref<6x8xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %T[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %next = sched.get_consumers %t : !sched.block
  %back = sched.get_producers %next : !sched.block
  sched.inline %back
  transform.yield
}
