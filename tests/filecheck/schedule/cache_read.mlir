// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The copy is of the whole buffer, before the nest.
// CHECK-LABEL: func.func @whole(
// CHECK-NEXT: [[B_SHARED:%\S+]] = loop.alloc "B.shared" shared : memref<4x8xf32>
// CHECK-NEXT: loop.for "ax0" [[AX0:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "B.shared" [ax0 = 4 at [[AX0]], ax1 = 8 at [[AX1]]]
// CHECK-NEXT:         (%b = %B[ax0, ax1] : memref<4x8xf32>) -> ([[B_SHARED]][ax0, ax1] : memref<4x8xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b.shared = [[B_SHARED]][k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @whole C(m, n, k)
  %copy = sched.cache_read %c "B" in "shared"

// -----

// compute_at makes it a copy of what one iteration reads.
// CHECK-LABEL: func.func @at_a_loop(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[A_LOCAL:%\S+]] = loop.alloc "A.local" local : memref<1x4xf32>
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "A.local" [ax0 = 6 at [[M]], ax1 = 4 at [[AX1]]]
// CHECK-NEXT:         (%a = %A[ax0, ax1] : memref<6x4xf32>) -> ([[A_LOCAL]][0, ax1] : memref<1x4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a.local = [[A_LOCAL]][0, k] : memref<1x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @at_a_loop C(m, n, k)
  %copy = sched.cache_read %c "A" in "local"
  sched.compute_at %copy at %m

// -----

// A buffer that is written in a loop is copied in that loop.
// CHECK-LABEL: func.func @written_in_a_loop(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<1x8xf32>
// CHECK-NEXT:   loop.for "T.n" [[T_N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T" [m = 6 at [[M]], n = 8 at [[T_N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> ([[T]][0, n] : memref<1x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   [[T_LOCAL:%\S+]] = loop.alloc "T.local" local : memref<1x8xf32>
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "T.local" [ax0 = 1 at 0, ax1 = 8 at [[AX1]]]
// CHECK-NEXT:         (%t = [[T]][ax0, ax1] : memref<1x8xf32>) -> ([[T_LOCAL]][ax0, ax1] : memref<1x8xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%t.local = [[T_LOCAL]][0, n] : memref<1x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: producer_consumer @written_in_a_loop T() D(p, q)
  sched.compute_at %t at %p
  %copy = sched.cache_read %d "T" in "local"
