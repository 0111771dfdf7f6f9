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
func.func @row(%A: memref<6x10xf32>, %D: memref<6x10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x10xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 10 {
      loop.block "T" [m = 6 at %m, n = 10 at %n]
          (%x = %A[m, n] : memref<6x10xf32>) -> (%T[m, n] : memref<6x10xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 10 {
      loop.block "D" [m = 6 at %m, n = 10 at %n]
          (%x = %T[m, n] : memref<6x10xf32>) -> (%D[m, n] : memref<6x10xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  sched.storage_align %t dim 0 factor 16 offset 4
  transform.yield
}

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
func.func @longer(%A: memref<6x10xf32>, %D: memref<6x10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x10xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 10 {
      loop.block "T" [m = 6 at %m, n = 10 at %n]
          (%x = %A[m, n] : memref<6x10xf32>) -> (%T[m, n] : memref<6x10xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 10 {
      loop.block "D" [m = 6 at %m, n = 10 at %n]
          (%x = %T[m, n] : memref<6x10xf32>) -> (%D[m, n] : memref<6x10xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  sched.storage_align %t dim 0 factor 16 offset 0
  transform.yield
}
