// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The scope is the allocation's.
// CHECK-LABEL: func.func @shared(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" shared : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M_1]], n = 8 at [[N_1]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// PAYLOAD: producer_consumer @shared
// PAYLOAD: script
  %t = sched.get_block %f "T"
  sched.set_scope %t "shared"

// -----

// Of several targets, all.
// CHECK-LABEL: func.func @both(
// CHECK-NEXT: loop.alloc "T" shared : memref
// CHECK-NEXT: loop.alloc "U" shared : memref
func.func @both(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  %U = loop.alloc "U" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>, %U[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0, %0 : f32, f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  sched.set_scope %t "shared"

