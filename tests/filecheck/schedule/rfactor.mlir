// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Partial sums, one for each part, counted from where it begins; then their sum.
// CHECK-LABEL: func.func @outer(
// CHECK-NEXT: [[S_RF:%\S+]] = loop.alloc "S.rf" : memref<4x1xf32>
// CHECK-NEXT: loop.for "k.0" [[K_0:%\S+]] = 4 parallel {
// CHECK-NEXT:   loop.for "k.1" [[K_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "S.rf" [i = 1 at 0, k.0 = 4 at [[K_0]], reduce k = 8 at [[K_1]]] combine [add]
// CHECK-NEXT:         (%a = %A[k.0 * 8 + k] : memref<32xf32>) -> ([[S_RF]][k.0, i] : memref<4x1xf32>) origin "S"[i, k.0 * 8 + k] {
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
// PAYLOAD: sum @outer S(k) s/10/32/g
  %k0, %k1 = sched.split %k by [4, 8] : !sched.loop, !sched.loop
  %partial = sched.rfactor %s along %k0
  sched.parallel %k0

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
// PAYLOAD: row_sums @lanes S(i, k)
  %k0, %k1 = sched.split %k by [-1, 4] : !sched.loop, !sched.loop
  %partial = sched.rfactor %s along %k1
  sched.vectorize %k1

// -----

// The targets of a joint reduction have partial results each, combined together.
// CHECK-LABEL: func.func @argmax(
// CHECK: [[V_RF:%\S+]] = loop.alloc "V.rf" : memref<4x4xf32>
// CHECK-NEXT: [[I_RF:%\S+]] = loop.alloc "I.rf" : memref<4x4xi64>
// CHECK: loop.block "M.rf" [m = 4 at %m, k.0 = 4 at {{.*}}, reduce k = 2 at {{.*}}]
// CHECK: -> ([[V_RF]][k.0, m] : memref<4x4xf32>, [[I_RF]][k.0, m] : memref<4x4xi64>)
// CHECK: loop.block "M" [m = 4 at {{.*}}, reduce k.0 = 4 at {{.*}}]
// CHECK-NEXT: combine ({{.*}} = -inf : f32, {{.*}} = 9223372036854775807 : i64)
// CHECK: [[V_RF]][k.0, m] : memref<4x4xf32>, {{.*}} = [[I_RF]][k.0, m] : memref<4x4xi64>) -> (%V[m] : memref<4xf32>, %I[m] : memref<4xi64>)
// PAYLOAD: argmax @argmax M(i, k)
  %k0, %k1 = sched.split %k by [4, 2] : !sched.loop, !sched.loop
  %p = sched.rfactor %m along %k0
