// RUN: strata-opt %s -p loop-to-low | filecheck %s

// Buffers lose their signedness, which the function then states; the identity and the combination stay unsigned.
// CHECK-LABEL: @most(%A: memref<16xi8>, %M: memref<i8>) attributes {outputs = 1 : i64, unsigned = array<i64: 0, 1>}
func.func @most(%A: memref<16xui8>, %M: memref<ui8>) attributes {outputs = 1 : i64} {
  // CHECK: vector.reduction <maxui>
  // CHECK: arith.maxui
  loop.for "k" %k = 16 vectorized {
    loop.block "M" [reduce k = 16 at %k] combine [max] (%a = %A[k] : memref<16xui8>) -> (%M[] : memref<ui8>) {
      loop.yield %a : i8
    }
  }
  func.return
}

// CHECK-LABEL: @least
func.func @least(%A: memref<4xui8>, %M: memref<ui8>) attributes {outputs = 1 : i64} {
  // CHECK: arith.constant -1 : i8
  // CHECK: arith.minui
  loop.for "k" %k = 4 {
    loop.block "M" [reduce k = 4 at %k] combine [min] (%a = %A[k] : memref<4xui8>) -> (%M[] : memref<ui8>) {
      loop.yield %a : i8
    }
  }
  func.return
}

// What is read outside has the bits of the unsigned literal.
// CHECK-LABEL: @padded
func.func @padded(%A: memref<4xui8>, %B: memref<5xui8>) attributes {outputs = 1 : i64} {
  // CHECK: arith.constant -56 : i8
  loop.for "i" %i = 5 {
    loop.block "B" [i = 5 at %i] (%a = %A[i - 1] where (i - 1 >= 0) else 200 : memref<4xui8>) -> (%B[i] : memref<5xui8>) {
      loop.yield %a : i8
    }
  }
  func.return
}

// Casts are done on vectors.
// CHECK-LABEL: @casts
func.func @casts(%A: memref<8xui8>, %B: memref<8xf16>, %C: memref<8xi64>) attributes {outputs = 2 : i64} {
  // CHECK: arith.uitofp %{{.*}} : vector<8xi8> to vector<8xf32>
  // CHECK: arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
  // CHECK: arith.extui %{{.*}} : vector<8xi8> to vector<8xi64>
  // CHECK-NOT: vector.extract
  loop.for "i" %i = 8 vectorized {
    loop.block "B" [i = 8 at %i] (%a = %A[i] : memref<8xui8>) -> (%B[i] : memref<8xf16>, %C[i] : memref<8xi64>) {
      %0 = arith.uitofp %a : i8 to f32
      %1 = arith.truncf %0 : f32 to f16
      %2 = arith.extui %a : i8 to i64
      loop.yield %1, %2 : f16, i64
    }
  }
  func.return
}
