// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The result is made in another scope and copied out behind the nest.
// CHECK-LABEL: func.func @whole(
// CHECK-NEXT: [[C_LOCAL:%\S+]] = loop.alloc "C.local" local : memref<6x8xf32>
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C_LOCAL]][m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "ax0" [[AX0:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "C.local" [ax0 = 6 at [[AX0]], ax1 = 8 at [[AX1]]]
// CHECK-NEXT:         (%c.local = [[C_LOCAL]][ax0, ax1] : memref<6x8xf32>) -> (%C[ax0, ax1] : memref<6x8xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @whole C(m, n, k)
  %copy = sched.cache_write %c in "local"

// -----

// reverse_compute_at makes it a copy of a tile.
// CHECK-LABEL: func.func @at_a_loop(
// CHECK-NEXT: loop.for "m.0" [[M_0:%\S+]] = 2 {
// CHECK-NEXT:   [[C_LOCAL:%\S+]] = loop.alloc "C.local" local : memref<3x8xf32>
// CHECK-NEXT:   loop.for "m.1" [[M_1:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:       loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:         loop.block "C" [m = 6 at [[M_0]] * 3 + [[M_1]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:             (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C_LOCAL]][m mod 3, n] : memref<3x8xf32>)
// CHECK:                loop.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "ax0" [[AX0:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C.local" [ax0 = 6 at [[M_0]] * 3 + [[AX0]], ax1 = 8 at [[AX1]]]
// CHECK-NEXT:           (%c.local = [[C_LOCAL]][ax0 mod 3, ax1] : memref<3x8xf32>) -> (%C[ax0, ax1] : memref<6x8xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @at_a_loop C(m, n, k)
  %m0, %m1 = sched.split %m by [-1, 3] : !sched.loop, !sched.loop
  %copy = sched.cache_write %c in "local"
  sched.reverse_compute_at %copy at %m0

// -----

// Several targets are copied out by one nest.
// CHECK-LABEL: func.func @argmax(
// CHECK: -> (%V.local[m] : memref<4xf32>, %I.local[m] : memref<4xi64>)
// CHECK: loop.block "V.local" [ax0 = 4 at %ax0]
// CHECK-NEXT: (%v.local = %V.local[ax0] : memref<4xf32>, %i.local = %I.local[ax0] : memref<4xi64>) -> (%V[ax0] : memref<4xf32>, %I[ax0] : memref<4xi64>)
// PAYLOAD: argmax @argmax M(i, k)
  %c = sched.cache_write %m in "local"
