// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// What one iteration reads is recomputed in it; the buffer shrinks to it.
// CHECK-LABEL: func.func @halo(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<3xf32>
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I]] + [[T_I]], w.0 = 8 at [[I]]]
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][i - w.0] : memref<3xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][0] : memref<3xf32>, %t_1 = [[T]][1] : memref<3xf32>, %t_2 = [[T]][2] : memref<3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: stencil @halo T(h) S(i)
  sched.compute_at %t at %i

// -----

// At an outer loop the inner ones are computed whole.
// CHECK-LABEL: func.func @whole_row(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<1x8xf32>
// CHECK-NEXT:   loop.for "T.n" [[T_N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[T_N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][0, n] : memref<1x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%t = [[T]][0, n] : memref<1x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @whole_row T(m, n) D(p, q)
  sched.compute_at %t at %p

// -----

// The region of a tile, cut to the buffer by a guard.
// CHECK-LABEL: func.func @tile(
// CHECK-NEXT: loop.for "m.0" [[M_0:%\S+]] = 2 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<4x8xf32>
// CHECK-NEXT:   loop.for "m" [[M:%\S+]] = 4 {
// CHECK-NEXT:     loop.for "T.n" [[T_N:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "T" [m = 6 at [[M_0]] * 4 + [[M]], n = 8 at [[T_N]]] where ([[M_0]] * -4 - [[M]] + 5 >= 0)
// CHECK-NEXT:           (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][m mod 4, n] : memref<4x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "m.1" [[M_1:%\S+]] = 4 {
// CHECK-NEXT:     loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "D" [m = 6 at [[M_0]] * 4 + [[M_1]], n = 8 at [[N]]] where ([[M_0]] * -4 - [[M_1]] + 5 >= 0)
// CHECK-NEXT:           (%t = [[T]][m mod 4, n] : memref<4x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @tile T() D(p, q)
  %p0, %p1 = sched.split %p by [-1, 4] : !sched.loop, !sched.loop
  sched.compute_at %t at %p0

// -----

// A reduction moves with all of its loops.
// CHECK-LABEL: func.func @reduction(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     [[C:%\S+]] = loop.alloc "C" : memref<1x1xf32>
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C]][0, 0] : memref<1x1xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%c = [[C]][0, 0] : memref<1x1xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul_doubled @reduction C() D(m, n)
  sched.compute_at %c at %n

// -----

// Two targets have one region: what is read of either.
// CHECK-LABEL: func.func @two(
// CHECK: loop.for "i" %i = 8 {
// CHECK-DAG: loop.alloc "T" : memref<3xf32>
// CHECK-DAG: loop.alloc "U" : memref<3xf32>
// CHECK: loop.for {{.*}} = 3 {
// CHECK-NEXT: loop.block "T"
// PAYLOAD: two_targets_8 @two T() D(i)
  sched.compute_at %t at %i

// -----

// A block that was moved before goes on inward: the row that it is tied to is visible there.
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     [[T:%\S+]] = loop.alloc "T" : memref<1x1xf32>
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][0, 0] : memref<1x1xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
func.func @twice(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "i" %i = 6 {
    loop.for "j" %j = 8 {
      loop.block "T" [m = 6 at %i, n = 8 at %j]
          (%a = %A[m, n] : memref<6x8xf32>) -> (%T[m, n] : memref<6x8xf32>) origin "T"[m, n] {
        %0 = arith.addf %a, %a : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%t = %T[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.mulf %t, %t : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script T() D(m, n)
  sched.compute_at %t at %m
  sched.compute_at %t at %n
