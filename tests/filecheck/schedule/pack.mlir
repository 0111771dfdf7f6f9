// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The order puts the columns of a panel innermost; zero is beyond the buffer.
// CHECK-LABEL: func.func @panels(
// CHECK-NEXT: [[B_PACK:%\S+]] = loop.alloc "B.pack" : memref<3x4x3xf32>
// CHECK-NEXT: loop.for "ax0" [[AX0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 4 {
// CHECK-NEXT:     loop.for "ax2" [[AX2:%\S+]] = 3 {
// CHECK-NEXT:       loop.block "B.pack" [ax0 = 3 at [[AX0]], ax1 = 4 at [[AX1]], ax2 = 3 at [[AX2]]]
// CHECK-NEXT:           (%b = %B[ax1, ax0 * 3 + ax2] where (ax0 * -3 - ax2 + 7 >= 0) else 0.0 : memref<4x8xf32>) -> ([[B_PACK]][ax0, ax1, ax2] : memref<3x4x3xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b.pack = [[B_PACK]][n floordiv 3, k, n mod 3] : memref<3x4x3xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @panels C()
  %p = sched.pack %c "B" tiles [1, 3] order [1, 0, 2]

// -----

// Tiles that divide the extents need no zeros.
// CHECK-LABEL: func.func @exact(
// CHECK-NEXT: [[A_PACK:%\S+]] = loop.alloc "A.pack" : memref<3x2x2x2xf32>
// CHECK-NEXT: loop.for "ax0" [[AX0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 2 {
// CHECK-NEXT:     loop.for "ax2" [[AX2:%\S+]] = 2 {
// CHECK-NEXT:       loop.for "ax3" [[AX3:%\S+]] = 2 {
// CHECK-NEXT:         loop.block "A.pack" [ax0 = 3 at [[AX0]], ax1 = 2 at [[AX1]], ax2 = 2 at [[AX2]], ax3 = 2 at [[AX3]]]
// CHECK-NEXT:             (%a = %A[ax0 * 2 + ax2, ax1 * 2 + ax3] : memref<6x4xf32>) -> ([[A_PACK]][ax0, ax1, ax2, ax3] : memref<3x2x2x2xf32>)
// CHECK-NEXT:           loop.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a.pack = [[A_PACK]][m floordiv 2, k floordiv 2, m mod 2, k mod 2] : memref<3x2x2x2xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @exact C()
  %p = sched.pack %c "A" tiles [2, 2]

// -----

// compute_at packs a panel where it is used.
// CHECK-LABEL: func.func @at_a_loop(
// CHECK-NEXT: loop.for "n.0" [[N_0:%\S+]] = 3 {
// CHECK-NEXT:   [[B_PACK:%\S+]] = loop.alloc "B.pack" : memref<1x4x3xf32>
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 4 {
// CHECK-NEXT:     loop.for "ax2" [[AX2:%\S+]] = 3 {
// CHECK-NEXT:       loop.block "B.pack" [ax0 = 3 at [[N_0]], ax1 = 4 at [[AX1]], ax2 = 3 at [[AX2]]]
// CHECK-NEXT:           (%b = %B[ax1, ax0 * 3 + ax2] where (ax0 * -3 - ax2 + 7 >= 0) else 0.0 : memref<4x8xf32>) -> ([[B_PACK]][0, ax1, ax2] : memref<1x4x3xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.for "n.1" [[N_1:%\S+]] = 3 {
// CHECK-NEXT:         loop.block "C" [m = 6 at [[M]], n = 8 at [[N_0]] * 3 + [[N_1]], reduce k = 4 at [[K]]] where ([[N_0]] * -3 - [[N_1]] + 7 >= 0) combine [add]
// CHECK-NEXT:             (%a = %A[m, k] : memref<6x4xf32>, %b.pack = [[B_PACK]][0, k, n mod 3] : memref<1x4x3xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:                loop.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @at_a_loop C(m, n, k)
  %n0, %n1 = sched.split %n by [-1, 3] : !sched.loop, !sched.loop
  sched.reorder %n0, %m, %k, %n1
  %p = sched.pack %c "B" tiles [1, 3] order [1, 0, 2]
  sched.compute_at %p at %n0
