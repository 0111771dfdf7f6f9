// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The variable of the fused loop runs over the product of the extents.
// CHECK-LABEL: func.func @two(
// CHECK-NEXT: loop.for "m_n" [[M_N:%\S+]] = 48 {
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "C" [m = 6 at [[M_N]] floordiv 8, n = 8 at [[M_N]] mod 8, reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:         (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @two C(m, n, k)
  %x = sched.fuse %m, %n

// -----

// Also loops of a reduction.
// CHECK-LABEL: func.func @three(
// CHECK-NEXT: loop.for "m_n_k" [[M_N_K:%\S+]] = 192 {
// CHECK-NEXT:   loop.block "C" [m = 6 at [[M_N_K]] floordiv 32, n = 8 at ([[M_N_K]] mod 32) floordiv 4, reduce k = 4 at [[M_N_K]] mod 4] combine [add]
// CHECK-NEXT:       (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @three C(m, n, k)
  %x = sched.fuse %m, %n, %k

// -----

// The loop outside stays.
// CHECK-LABEL: func.func @inner(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n_k" [[N_K:%\S+]] = 32 {
// CHECK-NEXT:     loop.block "C" [m = 6 at [[M]], n = 8 at [[N_K]] floordiv 4, reduce k = 4 at [[N_K]] mod 4] combine [add]
// CHECK-NEXT:         (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @inner C(m, n, k)
  %x = sched.fuse %n, %k
