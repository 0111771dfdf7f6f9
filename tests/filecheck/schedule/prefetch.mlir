// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The loop says what it asks for, and how early.
// CHECK-LABEL: func.func @ahead(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     } attributes {prefetch = {B = 2 : i64}}
// PAYLOAD: matmul @ahead C(m, n, k)
  sched.prefetch %k "B" ahead 2

// -----

// One for each buffer.
// CHECK-LABEL: func.func @two(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     } attributes {prefetch = {B = 2 : i64, A = 1 : i64}}
// PAYLOAD: matmul @two C(m, n, k)
  sched.prefetch %k "B" ahead 2
  sched.prefetch %k "A" ahead 1

// -----

// Over a loop inside, that one says for which loop it asks.
// CHECK-LABEL: func.func @over(
// CHECK-NEXT: loop.for "m"
// CHECK-NEXT:   loop.for "n"
// CHECK-NEXT:     loop.for "k"
// CHECK:            loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     } attributes {prefetch = {B = 2 : i64, A = [1 : i64, "m"]}}
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @over C(m, n, k)
  sched.prefetch %k "B" ahead 2
  sched.prefetch %m "A" ahead 1 over %k
