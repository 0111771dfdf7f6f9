// RUN: strata-opt %s -p apply-schedule --split-input-file | filecheck %s

// The order of a reduction is free.
// CHECK-LABEL: func.func @reduction_outside(
// CHECK-NEXT: loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:     loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @reduction_outside C(m, n, k)
  sched.reorder %k, %m, %n

// -----

// A loop that is not named stays where it is.
// CHECK-LABEL: func.func @between(
// CHECK-NEXT: loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// PAYLOAD: matmul @between C(m, n, k)
  sched.reorder %k, %m

// -----

// A recurrence along the outer loop only does not mind.
// CHECK-LABEL: func.func @recurrence(
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "i" [[I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "D" [i = 3 at [[I]], j = 4 at [[J]]]
// CHECK-NEXT:         (%d = %D[i, j] : memref<4x4xf32>) -> (%D[i + 1, j] : memref<4x4xf32>)
// PAYLOAD: wavefront @recurrence D(i, j) s/"j" %j = 3/"j" %j = 4/ s/j = 3 at/j = 4 at/ s/%D[i, j + 1]/%D[i, j]/
  sched.reorder %j, %i
