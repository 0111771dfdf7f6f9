// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Partial sums, one for each part; then their sum.
// CHECK-LABEL: func.func @outer(
// CHECK-NEXT: [[S_RF:%\S+]] = loop.alloc "S.rf" : memref<4x1xf32>
// CHECK-NEXT: loop.for "k.0" [[K_0:%\S+]] = 4 parallel {
// CHECK-NEXT:   loop.for "k.1" [[K_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "S.rf" [i = 1 at 0, k.0 = 4 at [[K_0]], reduce k = 32 at [[K_0]] * 8 + [[K_1]]] combine [add]
// CHECK-NEXT:         (%a = %A[k] : memref<32xf32>) -> ([[S_RF]][k.0, i] : memref<4x1xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "k.0" [[K_0_1:%\S+]] = 4 {
// CHECK-NEXT:   loop.block "S" [i = 1 at 0, reduce k.0 = 4 at [[K_0_1]]] combine [add]
// CHECK-NEXT:       (%s.rf = [[S_RF]][k.0, i] : memref<4x1xf32>) -> (%S[i] : memref<1xf32>)
// CHECK-NEXT:     loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @outer(%A: memref<32xf32>, %S: memref<1xf32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 32 {
    loop.block "S" [i = 1 at 0, reduce k = 32 at %k] combine [add]
        (%x = %A[k] : memref<32xf32>) -> (%S[i] : memref<1xf32>) origin "S"[i, k] {
      loop.yield %x : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %k = sched.get_loops %s : !sched.loop
  %k0, %k1 = sched.split %k by [4, 8] : !sched.loop, !sched.loop
  %partial = sched.rfactor %s along %k0
  sched.parallel %k0
  transform.yield
}

// -----

// Along the inner loop the partial sums are the lanes of a vector.
// CHECK-LABEL: func.func @lanes(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   [[S_RF:%\S+]] = loop.alloc "S.rf" : memref<4x4xf32>
// CHECK-NEXT:   loop.for "k.0" [[K_0:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "k.1" [[K_1:%\S+]] = 4 vectorized {
// CHECK-NEXT:       loop.block "S.rf" [i = 4 at [[I]], k.1 = 4 at [[K_1]], reduce k = 10 at [[K_0]] * 4 + [[K_1]]] where ([[K_0]] * -4 - [[K_1]] + 9 >= 0) combine [add]
// CHECK-NEXT:           (%a = %A[i, k] : memref<4x10xf32>) -> ([[S_RF]][k.1, i] : memref<4x4xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "k.1" [[K_1_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "S" [i = 4 at [[I]], reduce k.1 = 4 at [[K_1_1]]] combine [add]
// CHECK-NEXT:         (%s.rf = [[S_RF]][k.1, i] : memref<4x4xf32>) -> (%S[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @lanes(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "S"
  %i, %k = sched.get_loops %s : !sched.loop, !sched.loop
  %k0, %k1 = sched.split %k by [-1, 4] : !sched.loop, !sched.loop
  %partial = sched.rfactor %s along %k1
  sched.vectorize %k1
  transform.yield
}
