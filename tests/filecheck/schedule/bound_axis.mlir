// RUN: strata-opt %s -p apply-schedule | filecheck %s

// An axis that indexes no element of the target keeps its binding.
// CHECK-LABEL: func.func @rows(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 8 {
// CHECK-NEXT:     [[T:%\S+]] = loop.alloc "T" : memref<1xf32>
// CHECK-NEXT:     loop.block "T" [n = 8 at [[K]], w = 6 at [[I]]]
// CHECK-NEXT:         (%a = %A[w, n] : memref<6x8xf32>) -> ([[T]][0] : memref<1xf32>)
func.func @rows(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 6 {
    %T = loop.alloc "T" : memref<8xf32>
    loop.for "j" %j = 8 {
      loop.block "T" [n = 8 at %j, w = 6 at %i] (%a = %A[w, n] : memref<6x8xf32>) -> (%T[n] : memref<8xf32>) {
        loop.yield %a : f32
      }
    }
    loop.for "k" %k = 8 {
      loop.block "D" [m = 6 at %i, n = 8 at %k] (%t = %T[n] : memref<8xf32>) -> (%D[m, n] : memref<6x8xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script T() D(i, k)
  sched.compute_at %t at %k
