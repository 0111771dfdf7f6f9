// RUN: strata-opt %s -p loop-to-low | filecheck %s
// RUN: strata-opt %s -p 'loop-to-low{policy=strict}' | filecheck %s --check-prefix=STRICT

// A guard completed by a loop's variable becomes that loop's bound; the body has no branch.
// CHECK-LABEL: @tail
func.func @tail(%A: memref<10xf32>) attributes {outputs = 1 : i64} {
  // CHECK: scf.for %i.0 = %c0 to %c3 step %c1 {
  // CHECK: %[[UB:.*]] = arith.minsi %c4,
  // CHECK: scf.for %i.1 = %c0 to %[[UB]] step %c1 {
  // CHECK-NEXT: %[[I:.*]] = arith.addi
  // CHECK-NEXT: memref.store %{{.*}}, %A[%[[I]]] : memref<10xf32>
  loop.for "i.0" %i.0 = 3 {
    loop.for "i.1" %i.1 = 4 {
      loop.block "A" [i = 10 at %i.0 * 4 + %i.1] where (%i.0 * -4 - %i.1 + 9 >= 0) () -> (%A[i] : memref<10xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// A vectorized loop over a tail is masked.
// CHECK-LABEL: @masked
func.func @masked(%A: memref<10xf32>, %B: memref<10xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %[[MASK:.*]] = vector.create_mask %{{.*}} : vector<4xi1>
  // CHECK: vector.maskedload %A
  // CHECK: vector.maskedstore %B
  loop.for "i.0" %i.0 = 3 {
    loop.for "i.1" %i.1 = 4 vectorized {
      loop.block "B" [i = 10 at %i.0 * 4 + %i.1] where (%i.0 * -4 - %i.1 + 9 >= 0)
          (%a = %A[i] : memref<10xf32>) -> (%B[i] : memref<10xf32>) {
        %0 = arith.addf %a, %a : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// Row and column: one operand is a scalar broadcast, the other a vector; the init is explicit.
// CHECK-LABEL: @outer
// STRICT-LABEL: @outer
func.func @outer(%A: memref<8xf32>, %B: memref<8x16xf32>, %C: memref<16xf32>) attributes {outputs = 1 : i64} {
  // CHECK: vector.store %{{.*}}, %C[%c0] : memref<16xf32>, vector<16xf32>
  // CHECK-NEXT: scf.for %k
  // CHECK: %a = memref.load %A[%k] : memref<8xf32>
  // CHECK: %b = vector.load %B[%k, %c0] : memref<8x16xf32>, vector<16xf32>
  // CHECK: vector.broadcast %a : f32 to vector<16xf32>
  // CHECK: arith.mulf %{{.*}}, %b fastmath<contract> : vector<16xf32>
  // CHECK: arith.addf %{{.*}} fastmath<reassoc,contract> : vector<16xf32>
  // STRICT: arith.mulf %{{[0-9]+}}, %b : vector<16xf32>
  // STRICT: arith.addf %{{[0-9]+}}, %{{[0-9]+}} : vector<16xf32>
  loop.for "l" %l = 16 vectorized {
    loop.for "k" %k = 8 {
      loop.block "C" [l = 16 at %l, reduce k = 8 at %k] combine [add]
          (%a = %A[k] : memref<8xf32>, %b = %B[k, l] : memref<8x16xf32>) -> (%C[l] : memref<16xf32>) {
        %0 = arith.mulf %a, %b : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// Unrolled loops leave constants behind.
// CHECK-LABEL: @unrolled
func.func @unrolled(%A: memref<2xf32>) attributes {outputs = 1 : i64} {
  // CHECK: memref.store %{{.*}}, %A[%c0]
  // CHECK-NEXT: memref.store %{{.*}}, %A[%c1]
  loop.for "i" %i = 2 unrolled {
    loop.block "A" [i = 2 at %i] () -> (%A[i] : memref<2xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// The quotient and remainder of a fused loop's variable that divide evenly vanish.
// CHECK-LABEL: @fused
func.func @fused(%A: memref<4x4xf32>) attributes {outputs = 1 : i64} {
  // CHECK: memref.store %{{.*}}, %A[%i, %j] : memref<4x4xf32>
  loop.for "i" %i = 4 {
    loop.for "j" %j = 4 {
      loop.block "A" [x = 4 at (%i * 4 + %j) floordiv 4, y = 4 at (%i * 4 + %j) mod 4] () -> (%A[x, y] : memref<4x4xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// A buffer that lives inside a vectorized loop is another one in each lane.
// CHECK-LABEL: @private
func.func @private(%A: memref<8x4xf32>, %C: memref<8xf32>) attributes {outputs = 1 : i64} {
  // CHECK: %T = memref.alloc() : memref<1x8xf32>
  loop.for "i" %i = 8 vectorized {
    %T = loop.alloc "T" local : memref<1xf32>
    // CHECK: vector.store %{{.*}}, %T[%c0, %c0] : memref<1x8xf32>, vector<8xf32>
    // CHECK: scf.for %k
    // CHECK: vector.load %T[%c0, %c0] : memref<1x8xf32>, vector<8xf32>
    loop.for "k" %k = 4 {
      loop.block "T" [i = 8 at %i, reduce k = 4 at %k] combine [add] (%a = %A[i, k] : memref<8x4xf32>) -> (%T[0] : memref<1xf32>) {
        loop.yield %a : f32
      }
    }
    loop.block "C" [i = 8 at %i] (%t = %T[0] : memref<1xf32>) -> (%C[i] : memref<8xf32>) {
      loop.yield %t : f32
    }
  }
  func.return
}
