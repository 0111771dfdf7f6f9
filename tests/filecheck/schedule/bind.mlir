// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// One loop over blocks of threads, one over the threads of a block.
// CHECK-LABEL: func.func @grid(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 block_x {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 thread_x {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @grid C(m, n, k)
  sched.bind %m to "block_x"
  sched.bind %n to "thread_x"

// -----

// Virtual threads nest.
// CHECK-LABEL: func.func @virtual(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 vthread {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 vthread {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @virtual C(m, n, k)
  sched.bind %m to "vthread"
  sched.bind %n to "vthread"
