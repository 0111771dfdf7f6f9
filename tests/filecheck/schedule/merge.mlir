// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The bodies stand one after the other in one loop.
// CHECK-LABEL: func.func @same_extent(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer_10 @same_extent T(i) D(j)
  %x = sched.merge %i, %j

// -----

// The consumer follows two iterations late, when its window has been written.
// CHECK-LABEL: func.func @shifted(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "h" [[H:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[H]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[H]] - 2] where ([[H]] - 2 >= 0)
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>, %t_1 = [[T]][i + 1] : memref<10xf32>, %t_2 = [[T]][i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @shifted T(h) S(i)
  %x = sched.merge %h, %i shift 2

// -----

// Two nests that share a loop already may share the next.
// CHECK-LABEL: func.func @inner(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%t = [[T]][m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @inner T(m, n) D(p, q)
  %x = sched.merge %m, %p
  %y = sched.merge %n, %q

// -----

// Two reductions share their outer loop.
// CHECK-LABEL: func.func @reductions(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "D" [i = 4 at [[I]], reduce k = 10 at [[K]]] combine [add]
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%D[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "k" [[K_1:%\S+]] = 10 {
// CHECK-NEXT:     loop.block "E" [i = 4 at [[I]], reduce k = 10 at [[K_1]]] combine [mul]
// CHECK-NEXT:         (%a = %A[i, k] : memref<4x10xf32>) -> (%E[i] : memref<4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @reductions(%A: memref<4x10xf32>, %D: memref<4xf32>, %E: memref<4xf32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "D" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%D[i] : memref<4xf32>) origin "D"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  loop.for "j" %j = 4 {
    loop.for "k" %k = 10 {
      loop.block "E" [i = 4 at %j, reduce k = 10 at %k] combine [mul]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%E[i] : memref<4xf32>) origin "E"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script D(i, k) E(j, l)
  %x = sched.merge %i, %j
