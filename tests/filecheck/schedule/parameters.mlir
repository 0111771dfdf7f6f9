// RUN: strata-opt %s -p 'apply-schedule{verify=true}' | filecheck %s

// One choice is the factor of a split, the tile of a packed operand, and the rows of a blocked temporary.
// CHECK-LABEL: func.func @chosen(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<3x8x2xf32>
// CHECK:      [[B_PACK:%\S+]] = loop.alloc "B.pack" : memref<8x2x2xf32>
// CHECK:      loop.for "m.0" [[M0:%\S+]] = 3 {
// CHECK-NEXT:   loop.for "m.1" [[M1:%\S+]] = 2 {
// CHECK-NEXT:     loop.for "n.0" [[N0:%\S+]] = 1 {
// CHECK-NEXT:       loop.for "n.1" [[N1:%\S+]] = 4 {
// CHECK-NEXT:         loop.for "n.2" [[N2:%\S+]] = 2 {
// CHECK:                  (%t = [[T]][m floordiv 2, n, m mod 2] : memref<3x8x2xf32>, %b.pack = [[B_PACK]][n, (m floordiv 3 + 1) floordiv 2, (m floordiv 3 + 1) mod 2]
func.func @chosen(%A: memref<6x8xf32>, %B: memref<8x4xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "T" [m = 6 at %m, n = 8 at %n]
          (%x = %A[m, n] : memref<6x8xf32>) -> (%T[m, n] : memref<6x8xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %T[m, n] : memref<6x8xf32>, %y = %B[n, m floordiv 3 + 1] : memref<8x4xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %y : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script D(m, n) T()
  %two = sched.sample_categorical [2, 4] probabilities [0.5, 0.5] decision 0
  %four = sched.sample_categorical [2, 4] probabilities [0.5, 0.5] decision 1
  %m0, %m1 = sched.split %m by [-1, %two] : !sched.loop, !sched.loop
  %n0, %n1, %n2 = sched.split %n by [-1, %four, 2] : !sched.loop, !sched.loop, !sched.loop
  sched.transform_layout %t "T" tiles [%two, 1] order [0, 1, 2]
  %p = sched.pack %d "B" tiles [1, %two]
