// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// A row grows until its stride is four beyond a multiple of 16.
// CHECK-LABEL: func.func @row(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<6x20xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 10 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x10xf32>) -> ([[T]][m, n] : memref<6x20xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 10 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x20xf32>) -> (%D[m, n] : memref<6x10xf32>)
// PAYLOAD: producer_consumer_6x10 @row T()
  sched.storage_align %t dim 0 factor 16 offset 4

// -----

// From 10 it grows to 16.
// CHECK-LABEL: func.func @longer(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<6x16xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 10 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x10xf32>) -> ([[T]][m, n] : memref<6x16xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 10 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x16xf32>) -> (%D[m, n] : memref<6x10xf32>)
// PAYLOAD: producer_consumer_6x10 @longer T()
  sched.storage_align %t dim 0 factor 16 offset 0
