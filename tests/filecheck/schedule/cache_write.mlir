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
func.func @whole(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %copy = sched.cache_write %c in "local"
  transform.yield
}

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
func.func @at_a_loop(%A: memref<6x4xf32>, %B: memref<4x8xf32>, %C: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.for "k" %k = 4 {
        loop.block "C" [m = 6 at %m, n = 8 at %n, reduce k = 4 at %k] combine [add]
            (%x = %A[m, k] : memref<6x4xf32>, %y = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>) origin "C"[m, n, k] {
          %0 = arith.mulf %x, %y : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %m0, %m1 = sched.split %m by [-1, 3] : !sched.loop, !sched.loop
  %copy = sched.cache_write %c in "local"
  sched.reverse_compute_at %copy at %m0
  transform.yield
}

// -----

// Several targets are copied out by one nest.
// CHECK-LABEL: func.func @argmax(
// CHECK: -> (%V.local[m] : memref<4xf32>, %I.local[m] : memref<4xi64>)
// CHECK: loop.block "V.local" [ax0 = 4 at %ax0]
// CHECK-NEXT: (%v.local = %V.local[ax0] : memref<4xf32>, %i.local = %I.local[ax0] : memref<4xi64>) -> (%V[ax0] : memref<4xf32>, %I[ax0] : memref<4xi64>)
func.func @argmax(%A: memref<4x8xf32>, %V: memref<4xf32>, %I: memref<4xi64>) attributes {outputs = 2 : i64} {
  loop.for "m" %m = 4 {
    loop.for "k" %k = 8 {
      loop.block "M" [m = 4 at %m, reduce k = 8 at %k]
    combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      loop.yield %x, %y : f32, i64
    } (%a = %A[m, k] : memref<4x8xf32>) -> (%V[m] : memref<4xf32>, %I[m] : memref<4xi64>) origin "M"[m, k] {
        %0 = loop.index "k" : index
        %1 = arith.index_cast %0 : index to i64
        loop.yield %a, %1 : f32, i64
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %s = sched.get_block %f "M"
  %m, %k = sched.get_loops %s : !sched.loop, !sched.loop
  %c = sched.cache_write %s in "local"
  transform.yield
}
