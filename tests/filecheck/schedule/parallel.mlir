// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The iterations run on several threads.
// CHECK-LABEL: func.func @marked(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 parallel {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
func.func @marked(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  sched.parallel %m
  transform.yield
}

// -----

// A buffer that lives in one iteration is private to it.
// CHECK-LABEL: func.func @private(
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 10 parallel {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<1xf32>
// CHECK-NEXT:   loop.block "T" [i = 10 at [[J]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][0] : memref<1xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "D" [i = 10 at [[J]]]
// CHECK-NEXT:       (%t = [[T]][0] : memref<1xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @private(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 {
    loop.block "D" [i = 10 at %j]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  sched.compute_at %t at %j
  sched.parallel %j
  transform.yield
}
