// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The lowering unrolls what is marked here.
// CHECK-LABEL: func.func @marked(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 unrolled {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @marked C(m, n, k)
  sched.unroll %k
