// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The init is a block before the loop; the reduction accumulates.
// CHECK-LABEL: func.func @before_the_reduction(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.block "S.init" [i = 4 at [[I]]] () -> (%S[i] : memref<4xf32>) {
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "S" [i = 4 at [[I]], reduce k = 10 at [[K]]] combine [add] accumulate
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: row_sums @before_the_reduction S(i, k)
  %init = sched.decompose_reduction %s at %k

// -----

// Before an outer loop it gets loops of its own.
// CHECK-LABEL: func.func @outermost(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.block "S.init" [i = 4 at [[I]]] () -> (%S[i] : memref<4xf32>) {
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "S" [i = 4 at [[I_1]], reduce k = 10 at [[K]]] combine [add] accumulate
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: row_sums @outermost S(i, k)
  %init = sched.decompose_reduction %s at %i

// -----

// A product begins with one.
// CHECK-LABEL: func.func @product(
// CHECK-NEXT: loop.block "S.init" [i = 1 at 0] () -> (%S[i] : memref<1xf32>) {
// CHECK:        loop.yield
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "k" [[K:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "S" [i = 1 at 0, reduce k = 10 at [[K]]] combine [mul] accumulate
// CHECK-NEXT:       (%a = %A[k] : memref<10xf32>) -> (%S[i] : memref<1xf32>)
// CHECK-NEXT:     loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: sum @product S(k) s/[add]/[mul]/
  %init = sched.decompose_reduction %s at %k

// -----

// Inside the reduction it runs in the first round of the reduce loops outside, whatever spatial loops are between.
// CHECK-LABEL: func.func @first_round(
// CHECK-NEXT: loop.for "k.0" [[K0:%\S+]] = 2 {
// CHECK-NEXT:   loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:     loop.for "k.1" [[K1:%\S+]] = 3 {
// CHECK-NEXT:       loop.for "n"  [[N:%\S+]] = 8 {
// CHECK-NEXT:         loop.block "C.init" [m = 6 at [[M]], n = 8 at [[N]]] where ([[K0]] == 0, [[K1]] == 0) () -> (%C[m, n] : memref<6x8xf32>) {
// CHECK-NEXT:           %{{.*}} = arith.constant 0xff800000 : f32
// CHECK-NEXT:           loop.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:         loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 5 at [[K0]] * 3 + [[K1]]] where ([[K0]] * -3 - [[K1]] + 4 >= 0) combine [max] accumulate
// PAYLOAD: matmul @first_round C(m, n, k) s/6x4/6x5/g s/4x8/5x8/g s/= 4/= 5/g s/[add]/[max]/
  %k0, %k1 = sched.split %k by [-1, 3] : !sched.loop, !sched.loop
  sched.reorder %k0, %m, %k1, %n
  %init = sched.decompose_reduction %c at %n

// -----

// The first value of a recurrence, which a condition stated, is written before the loop.
// CHECK-LABEL: func.func @recurrence(
// CHECK:      loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.block "M.init" [i = 4 at [[I]], t = 6 at 0] () -> (%M[i] : memref<4xf32>) {
// CHECK-NEXT:     arith.constant 2.000000e+00
// CHECK-NEXT:     loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "t" [[T:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "i" [[I_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "M" [i = 4 at [[I_1]], t = 6 at [[T]]]
// CHECK-NEXT:         (%m = %M[i] : memref<4xf32>, %a = %A[i, t] : memref<4x6xf32>) -> (%M[i] : memref<4xf32>)
func.func @recurrence(%A: memref<4x6xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %M = loop.alloc "M" : memref<4x6xf32>
  loop.for "i" %i = 4 {
    loop.for "t" %t = 6 {
      loop.block "M" [i = 4 at %i, t = 6 at %t]
          (%m = %M[i, t - 1] where (t - 1 >= 0) else 2.0 : memref<4x6xf32>, %a = %A[i, t] : memref<4x6xf32>)
          -> (%M[i, t] : memref<4x6xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "j" %j = 4 {
    loop.block "Y" [j = 4 at %j] (%m = %M[j, 5] : memref<4x6xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  sched.reorder %t, %i
  sched.transform_layout %m "M" by affine_map<(i, t) -> (i)>
  %init = sched.decompose_reduction %m at %t
