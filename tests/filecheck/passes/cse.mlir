// RUN: strata-opt %s -cse --split-input-file | filecheck %s

// Labels and the names of axes do not count.
// CHECK-LABEL: @computes
// CHECK: %A = te.compute "A"
// CHECK-NOT: te.compute "B"
// CHECK: te.compute "C" [i = 4]
// CHECK-NEXT: (%a = %A[i] : tensor<4xf32>, %b = %A[i] : tensor<4xf32>)
func.func @computes(%X: tensor<4xf32>) -> tensor<4xf32> {
  %A = te.compute "A" [i = 4] (%x = %X[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %x, %x : f32
    te.yield %0 : f32
  }
  %B = te.compute "B" [j = 4] (%y = %X[j] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.addf %y, %y : f32
    te.yield %0 : f32
  }
  %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xf32>, %b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<4xf32>
}

// Other conditions, combiners, element types or attributes are other values.
// CHECK-LABEL: @unequal
// CHECK-COUNT-5: te.compute
func.func @unequal(%X: tensor<4xi8>) -> (tensor<i8>, tensor<i8>, tensor<ui8>, tensor<i8>, tensor<i8>) {
  %A = te.compute "A" [reduce i = 4] combine [max] (%x = %X[i] : tensor<4xi8>) -> tensor<i8> {
    te.yield %x : i8
  }
  %B = te.compute "B" [reduce i = 4] combine [min] (%x = %X[i] : tensor<4xi8>) -> tensor<i8> {
    te.yield %x : i8
  }
  %C = te.compute "C" [reduce i = 4] combine [max] (%x = %X[i] : tensor<4xi8>) -> tensor<ui8> {
    te.yield %x : i8
  }
  %D = te.compute "D" [reduce i = 4] combine [max]
      (%x = %X[i] where (i - 1 >= 0) else 0 : tensor<4xi8>) -> tensor<i8> {
    te.yield %x : i8
  }
  %E = te.compute "E" [reduce i = 4] combine [max] (%x = %X[i] : tensor<4xi8>) -> tensor<i8> {
    te.yield %x : i8
  } attributes {mark}
  func.return %A, %B, %C, %D, %E : tensor<i8>, tensor<i8>, tensor<ui8>, tensor<i8>, tensor<i8>
}

// CHECK-LABEL: @gathers
// CHECK-COUNT-1: te.gather
// CHECK: func.return %Y, %Y
func.func @gathers(%T: tensor<9x4xf32>, %I: tensor<5xi64>) -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  %Y = te.gather "Y" [i = 5, d = 4] %T[%I[i], d] else 0.0 : tensor<9x4xf32>, tensor<5xi64> -> tensor<5x4xf32>
  %Z = te.gather "Z" [k = 5, e = 4] %T[%I[k], e] else 0.0 : tensor<9x4xf32>, tensor<5xi64> -> tensor<5x4xf32>
  func.return %Y, %Z : tensor<5x4xf32>, tensor<5x4xf32>
}

// CHECK-LABEL: @bodies
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: arith.addf %[[M:.*]], %[[M]]
func.func @bodies(%X: tensor<4xf32>) -> tensor<4xf32> {
  %A = te.compute "A" [i = 4] (%x = %X[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.mulf %x, %x : f32
    %1 = arith.mulf %x, %x : f32
    %2 = arith.addf %0, %1 : f32
    te.yield %2 : f32
  }
  func.return %A : tensor<4xf32>
}

// CHECK-LABEL: @loop_constants
// CHECK-COUNT-1: loop.constant
// CHECK: loop.block "A" [i = 4 at %i]
// CHECK-NEXT: (%v = %V[i] : memref<4xf32>, %w = %V[i] : memref<4xf32>)
// CHECK: loop.block "B"
func.func @loop_constants(%A: memref<4xf32>, %B: memref<4xf32>) attributes {outputs = 2 : i64} {
  %V = loop.constant "V" dense<1.0> : tensor<4xf32>
  %W = loop.constant "W" dense<1.0> : tensor<4xf32>
  loop.for "i" %i = 4 {
    loop.block "A" [i = 4 at %i] (%v = %V[i] : memref<4xf32>, %w = %W[i] : memref<4xf32>) -> (%A[i] : memref<4xf32>) {
      %0 = arith.addf %v, %w : f32
      loop.yield %0 : f32
    }
    loop.block "B" [i = 4 at %i] (%v = %V[i] : memref<4xf32>, %w = %W[i] : memref<4xf32>) -> (%B[i] : memref<4xf32>) {
      %0 = arith.addf %v, %w : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// Two buffers are two, even if nothing tells them apart.
// CHECK-LABEL: @buffers
// CHECK-COUNT-2: memref.alloc
func.func @buffers() -> (memref<4xf32>, memref<4xf32>) {
  %A = memref.alloc() : memref<4xf32>
  %B = memref.alloc() : memref<4xf32>
  func.return %A, %B : memref<4xf32>, memref<4xf32>
}

// CHECK-LABEL: @loads
// CHECK-COUNT-2: memref.load
// CHECK-NOT: memref.load
// CHECK: func.return
func.func @loads(%A: memref<f32>, %x: f32) -> (f32, f32, f32) {
  %0 = memref.load %A[] : memref<f32>
  %1 = memref.load %A[] : memref<f32>
  memref.store %x, %A[] : memref<f32>
  %2 = memref.load %A[] : memref<f32>
  func.return %0, %1, %2 : f32, f32, f32
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-COUNT-1: func.call
// CHECK-NOT: func.call
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> {
  %Y = te.compute "Y" [i = 4] (%a = %A[i] : tensor<4xf32>) -> tensor<4xf32> {
    %0 = arith.negf %a : f32
    te.yield %0 : f32
  }
  func.return %Y : tensor<4xf32>
}
func.func @main(%A: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
