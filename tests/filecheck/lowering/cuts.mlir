// RUN: strata-opt %s -p loop-to-low --split-input-file | filecheck %s
// RUN: strata-opt %s -p loop-to-low,promote-buffers --split-input-file | filecheck %s --check-prefix=CARRIED

// The iterations whose vectors are all whole are a loop without masks; the last one stands behind it, once, and of its
// vectors those that are still whole have no mask either, and the one that is not there at all is left out.
// CHECK-LABEL: @last
// CHECK: scf.for %i = %c0 to %c2 step %c1 {
// CHECK-NOT: mask
// CHECK-NOT: scf.if
// CHECK-COUNT-4: vector.store %{{.*}}, %Y
// CHECK-NEXT: }
// CHECK-NEXT: vector.load %X[%c32]
// CHECK-NEXT: vector.store %{{.*}}, %Y[%c32]
// CHECK-NEXT: vector.load %X[%c36]
// CHECK-NEXT: vector.store %{{.*}}, %Y[%c36]
// CHECK-NEXT: [[LEFT:%.*]] = vector.create_mask %c3 : vector<4xi1>
// CHECK-NEXT: vector.maskedload %X[%c40], [[LEFT]]
// CHECK-NEXT: vector.maskedstore %Y[%c40], [[LEFT]]
// CHECK-NEXT: func.return
func.func @last(%X: memref<43xf32>, %Y: memref<43xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 3 {
    loop.for "u" %u = 4 unrolled {
      loop.for "l" %l = 4 vectorized {
        loop.block "Y" [n = 43 at %i * 16 + %u * 4 + %l] where (%i * -16 - %u * 4 - %l + 42 >= 0)
            (%x = %X[n] : memref<43xf32>) -> (%Y[n] : memref<43xf32>) {
          loop.yield %x : f32
        }
      }
    }
  }
  func.return
}

// -----

// Where the cut depends on outer loops, the end is a loop of the iterations that have anything to do.
// CHECK-LABEL: @outer
// CHECK: [[WHOLE:%.*]] = arith.minsi %c8, %{{.*}} : index
// CHECK: scf.for %i = %c0 to [[WHOLE]] step %c1 {
// CHECK-NOT: mask
// CHECK: vector.load %X
// CHECK-NEXT: vector.store %{{.*}}, %Y
// CHECK-NEXT: }
// CHECK: [[END:%.*]] = arith.minsi %c8, %{{.*}} : index
// CHECK: scf.for %{{.*}} = [[WHOLE]] to [[END]] step %c1 {
// CHECK: [[LEFT:%.*]] = vector.create_mask %{{.*}} : vector<4xi1>
// CHECK-NOT: scf.if
// CHECK: vector.maskedload %X[%o, %{{.*}}], [[LEFT]]
// CHECK-NEXT: vector.maskedstore %Y[%o, %{{.*}}], [[LEFT]]
// CHECK-NEXT: }
// PAYLOAD: rows_of_vectors @outer

// -----

// The lanes of an accumulator that the last iteration does not add to are stored as they were, so that it is in a
// register from the init to the last reader.
// CHECK-LABEL: @sums
// CHECK: scf.for %i = %c0 to %c2 step %c1 {
// CHECK: }
// CHECK: [[LEFT:%.*]] = vector.create_mask %c3 : vector<4xi1>
// CHECK-NEXT: vector.maskedload %X[%c20], [[LEFT]]
// CHECK-NEXT: [[OLD:%.*]] = vector.load %T[%c4]
// CHECK-NEXT: [[NEW:%.*]] = arith.addf [[OLD]]
// CHECK-NEXT: [[KEPT:%.*]] = arith.select [[LEFT]], [[NEW]], [[OLD]]
// CHECK-NEXT: vector.store [[KEPT]], %T[%c4]
// CARRIED-LABEL: @sums
// CARRIED-NOT: %T
// CARRIED: [[SUMS:%.*]], [[OTHERS:%.*]] = scf.for %i = %c0 to %c2 step %c1 iter_args(
// CARRIED: scf.yield
// CARRIED: arith.addf [[SUMS]], %{{.*}}
// CARRIED: [[ADDED:%.*]] = arith.addf [[OTHERS]], %{{.*}}
// CARRIED-NEXT: arith.select %{{.*}}, [[ADDED]], [[OTHERS]]
// CARRIED-NOT: %T
// CARRIED: func.return
func.func @sums(%X: memref<23xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "r" %r = 2 unrolled {
    loop.for "z" %z = 4 vectorized {
      loop.block "T.init" [n = 8 at %r * 4 + %z] () -> (%T[n] : memref<8xf32>) {
        %0 = arith.constant 0.000000e+00 : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 3 {
    loop.for "u" %u = 2 unrolled {
      loop.for "l" %l = 4 vectorized {
        loop.block "T" [n = 8 at %u * 4 + %l, reduce k = 3 at %i] where (%i * -8 - %u * 4 - %l + 22 >= 0) combine [add] accumulate
            (%x = %X[k * 8 + n] : memref<23xf32>) -> (%T[n] : memref<8xf32>) {
          loop.yield %x : f32
        }
      }
    }
  }
  loop.for "q" %q = 2 unrolled {
    loop.for "p" %p = 4 vectorized {
      loop.block "S" [n = 8 at %q * 4 + %p] (%t = %T[n] : memref<8xf32>) -> (%S[n] : memref<8xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}

// -----

// So it is where the end is a loop: the accumulator is carried through both.
// CARRIED-LABEL: @rows
// CARRIED: [[SUM:%.*]] = scf.for %i = %c0 to [[WHOLE:%.*]] step %c1 iter_args(
// CARRIED-NOT: mask
// CARRIED: scf.yield
// CARRIED: scf.for %{{.*}} = [[WHOLE]] to %{{.*}} step %c1 iter_args(%{{.*}} = [[SUM]])
// CARRIED-NOT: %T
// CARRIED: arith.select
// CARRIED-NEXT: scf.yield
func.func @rows(%X: memref<16x33xf32>, %S: memref<16x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 16 {
    %T = loop.alloc "T" : memref<4xf32>
    loop.for "z" %z = 4 vectorized {
      loop.block "T.init" [n = 4 at %z] () -> (%T[n] : memref<4xf32>) {
        %0 = arith.constant 0.000000e+00 : f32
        loop.yield %0 : f32
      }
    }
    loop.for "i" %i = 9 {
      loop.for "l" %l = 4 vectorized {
        loop.block "T" [r = 16 at %m, n = 4 at %l, reduce k = 9 at %i] where (%m * 2 - %i * 4 - %l + 2 >= 0) combine [add] accumulate
            (%x = %X[r, k * 4 + n] : memref<16x33xf32>) -> (%T[n] : memref<4xf32>) {
          loop.yield %x : f32
        }
      }
    }
    loop.for "p" %p = 4 vectorized {
      loop.block "S" [m = 16 at %m, n = 4 at %p] (%t = %T[n] : memref<4xf32>) -> (%S[m, n] : memref<16x4xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}
// -----

// A result that others may write beside is stored under the mask, and so is a temporary that threads share.
// CHECK-LABEL: @shared
// CHECK: vector.maskedstore %S
// CHECK: scf.parallel
// CHECK: vector.maskedstore %T
func.func @shared(%X: memref<7xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 2 {
    loop.for "l" %l = 4 vectorized {
      loop.block "S" [n = 4 at %l, reduce k = 2 at %i] where (%i * -4 - %l + 6 >= 0) combine [add] accumulate
          (%x = %X[k * 4 + n] : memref<7xf32>) -> (%S[n] : memref<4xf32>) {
        loop.yield %x : f32
      }
    }
  }
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "p" %p = 2 parallel {
    loop.for "j" %j = 2 {
      loop.for "m" %m = 4 vectorized {
        loop.block "T" [o = 2 at %p, n = 4 at %m, reduce k = 2 at %j] where (%j * -4 - %m + 6 >= 0) combine [add] accumulate
            (%x = %X[k * 4 + n] : memref<7xf32>) -> (%T[o * 4 + n] : memref<8xf32>) {
          loop.yield %x : f32
        }
      }
    }
  }
  func.return
}

// -----

// A short loop is not cut where its end would be a loop.
// CHECK-LABEL: @short
// CHECK: scf.for %o
// CHECK: scf.for %i = %c0 to %c7 step %c1 {
// CHECK: vector.maskedstore %Y
// CHECK-NOT: scf.for
// CHECK: func.return
// PAYLOAD: rows_of_vectors @short s/%i = 8/%i = 7/ s/%o * 32/%o * 28/ s/%o * -32/%o * -28/

// -----

// Only the innermost loop of a nest is cut, and none that holds no vectors.
// CHECK-LABEL: @inner
// CHECK: scf.for %o = %c0 to %c3 step %c1 {
// CHECK: scf.for %i = %c0 to %c4 step %c1 {
// CHECK-NEXT: vector.maskedload
// CHECK-NOT: scf.for %i
// CHECK: scf.for %s = %c0 to %c3 step %c1 {
// CHECK: scf.if
// CHECK-NOT: scf.for
// CHECK: func.return
func.func @inner(%X: memref<11xf32>, %Y: memref<4x11xf32>) attributes {outputs = 1 : i64} {
  loop.for "o" %o = 3 {
    loop.for "i" %i = 4 {
      loop.for "l" %l = 4 vectorized {
        loop.block "Y" [m = 4 at %i, n = 11 at %o * 4 + %l] where (%o * -4 - %l + 10 >= 0)
            (%x = %X[n] : memref<11xf32>) -> (%Y[m, n] : memref<4x11xf32>) {
          loop.yield %x : f32
        }
      }
    }
  }
  loop.for "s" %s = 3 {
    loop.for "u" %u = 4 unrolled {
      loop.block "Z" [n = 11 at %s * 4 + %u] where (%s * -4 - %u + 10 >= 0)
          (%x = %X[n] : memref<11xf32>) -> (%Y[0, n] : memref<4x11xf32>) {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

// -----

// Rows may have no whole iteration: then the end begins where the loop does. No test stands around a sum of which no
// lane may be left, so what all lanes read is read inside its buffer.
// CHECK-LABEL: @groups
// CHECK: [[LEAST:%.*]] = arith.minsi %c9, %{{.*}} : index
// CHECK: [[WHOLE:%.*]] = arith.maxsi [[LEAST]], %c0 : index
// CHECK: scf.for %i = %c0 to [[WHOLE]] step %c1 {
// CHECK: memref.load %A[%{{.*}}]
// CHECK: scf.for %{{.*}} = [[WHOLE]] to %{{.*}} step %c1 {
// CHECK-NOT: scf.if
// CHECK: [[INSIDE:%.*]] = arith.minsi %{{.*}}, %c15 : index
// CHECK: memref.load %A[[[INSIDE]]]
// CHECK-NOT: scf.if
// CHECK: vector.store %{{.*}}, %T
func.func @groups(%X: memref<10x61xf32>, %A: memref<16xf32>, %S: memref<10x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 10 {
    %T = loop.alloc "T" : memref<4xf32>
    loop.for "z" %z = 4 vectorized {
      loop.block "T.init" [n = 4 at %z] () -> (%T[n] : memref<4xf32>) {
        %0 = arith.constant 0.000000e+00 : f32
        loop.yield %0 : f32
      }
    }
    loop.for "i" %i = 9 {
      loop.for "u" %u = 2 unrolled {
        loop.for "l" %l = 4 vectorized {
          loop.block "T" [r = 10 at %m, n = 4 at %l, reduce k = 18 at %i * 2 + %u]
              where (%m * 8 - %i * 8 - %u * 4 - %l - 12 >= 0) combine [add] accumulate
              (%x = %X[r, k * 4 + n] : memref<10x61xf32>, %a = %A[k] : memref<16xf32>) -> (%T[n] : memref<4xf32>) {
            %0 = arith.mulf %x, %a : f32
            loop.yield %0 : f32
          }
        }
      }
    }
    loop.for "p" %p = 4 vectorized {
      loop.block "S" [m = 10 at %m, n = 4 at %p] (%t = %T[n] : memref<4xf32>) -> (%S[m, n] : memref<10x4xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}
