// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// What is only read is copied in.
// CHECK-LABEL: func.func @read_only(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   [[A_SHARED:%\S+]] = loop.alloc "A.shared" shared : memref<1x4xf32>
// CHECK-NEXT:   loop.for "ax1" [[AX1:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "A.shared.in" [ax0 = 6 at [[M]], ax1 = 4 at [[AX1]]]
// CHECK-NEXT:         (%a = %A[ax0, ax1] : memref<6x4xf32>) -> ([[A_SHARED]][0, ax1] : memref<1x4xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M]], n = 8 at [[N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:           (%a.shared = [[A_SHARED]][0, k] : memref<1x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> (%C[m, n] : memref<6x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @read_only C(m, n, k)
  %in, %out = sched.stage %m "A" in "shared"

// -----

// What is written whole is copied out.
// CHECK-LABEL: func.func @written(
// CHECK-NEXT: loop.for "m.0" [[M_0:%\S+]] = 2 {
// CHECK-NEXT:   [[C_LOCAL:%\S+]] = loop.alloc "C.local" local : memref<3x8xf32>
// CHECK-NEXT:   loop.for "m.1" [[M_1:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:       loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:         loop.block "C" [m = 6 at [[M_0]] * 3 + [[M_1]], n = 8 at [[N]], w.0 = 4 at [[M_0]] * 3, reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:             (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C_LOCAL]][m - w.0, n] : memref<3x8xf32>)
// CHECK:                loop.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.for "ax0" [[AX0:%\S+]] = 3 {
// CHECK-NEXT:     loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C.local.out" [ax0 = 6 at [[M_0]] * 3 + [[AX0]], ax1 = 8 at [[AX1]], w.0 = 4 at [[M_0]] * 3]
// CHECK-NEXT:           (%c.local = [[C_LOCAL]][ax0 - w.0, ax1] : memref<3x8xf32>) -> (%C[ax0, ax1] : memref<6x8xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul @written C(m, n, k)
  %m0, %m1 = sched.split %m by [-1, 3] : !sched.loop, !sched.loop
  %in, %out = sched.stage %m0 "C" in "local"

// -----

// Partial sums travel in and out.
// CHECK-LABEL: func.func @accumulating(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "C.init" [m = 6 at [[M]], n = 8 at [[N]]] () -> (%C[m, n] : memref<6x8xf32>) {
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "m" [[M_1:%\S+]] = 6 {
// CHECK-NEXT:     [[C_LOCAL:%\S+]] = loop.alloc "C.local" local : memref<1x8xf32>
// CHECK-NEXT:     loop.for "ax1" [[AX1:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C.local.in" [ax0 = 6 at [[M_1]], ax1 = 8 at [[AX1]]]
// CHECK-NEXT:           (%c = %C[ax0, ax1] : memref<6x8xf32>) -> ([[C_LOCAL]][0, ax1] : memref<1x8xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for "n" [[N_1:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C" [m = 6 at [[M_1]], n = 8 at [[N_1]], reduce k = 4 at [[K]]] combine [add] accumulate
// CHECK-NEXT:           (%a = %A[m, k] : memref<6x4xf32>, %b = %B[k, n] : memref<4x8xf32>) -> ([[C_LOCAL]][0, n] : memref<1x8xf32>)
// CHECK:              loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     loop.for "ax1" [[AX1_1:%\S+]] = 8 {
// CHECK-NEXT:       loop.block "C.local.out" [ax0 = 6 at [[M_1]], ax1 = 8 at [[AX1_1]]]
// CHECK-NEXT:           (%c.local = [[C_LOCAL]][0, ax1] : memref<1x8xf32>) -> (%C[ax0, ax1] : memref<6x8xf32>)
// CHECK-NEXT:         loop.yield
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
// PAYLOAD: matmul_mkn @accumulating C(m, k, n)
  sched.reorder %k, %m
  %init = sched.decompose_reduction %c at %k
  %in, %out = sched.stage %m "C" in "local"

// -----

// Windows may overlap.
// CHECK-LABEL: func.func @halo(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   [[A_LOCAL:%\S+]] = loop.alloc "A.local" local : memref<3xf32>
// CHECK-NEXT:   loop.for "ax0" [[AX0:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "A.local.in" [ax0 = 10 at [[I]] + [[AX0]], w.0 = 8 at [[I]]]
// CHECK-NEXT:         (%a = %A[ax0] : memref<10xf32>) -> ([[A_LOCAL]][ax0 - w.0] : memref<3xf32>)
// CHECK-NEXT:       loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "D" [i = 8 at [[I]]]
// CHECK-NEXT:       (%a.local = [[A_LOCAL]][0] : memref<3xf32>, %a.local_1 = [[A_LOCAL]][1] : memref<3xf32>, %a.local_2 = [[A_LOCAL]][2] : memref<3xf32>) -> (%D[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @halo(%A: memref<10xf32>, %D: memref<8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.block "D" [i = 8 at %i]
        (%x = %A[i] : memref<10xf32>, %y = %A[i + 1] : memref<10xf32>, %z = %A[i + 2] : memref<10xf32>) -> (%D[i] : memref<8xf32>) origin "D"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

// PAYLOAD: script D(i)
  %in, %out = sched.stage %i "A" in "local"
