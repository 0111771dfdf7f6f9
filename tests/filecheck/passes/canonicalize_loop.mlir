// RUN: strata-opt %s -canonicalize --split-input-file | filecheck %s

// CHECK-LABEL: @unit_loops
// CHECK-NEXT: loop.for "i" %i = 4 {
// CHECK-NEXT: loop.block "A" [i = 4 at %i] () -> (%A[i] : memref<4xf32>) {
func.func @unit_loops(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "u" %u = 1 {
    loop.for "i" %i = 4 {
      loop.for "v" %v = 1 vectorized {
        loop.block "A" [i = 4 at %u * 4 + %i + %v] where (%i + 1 >= 0) () -> (%A[i] : memref<4xf32>) {
          %0 = arith.constant 1.0 : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

// CHECK-LABEL: @bindings
// CHECK: loop.block "A" [i = 4 at %i, j = 4 at %j] () ->
func.func @bindings(%A: memref<4x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "j" %j = 4 {
      loop.block "A" [i = 4 at (%i * 4 + %j) floordiv 4, j = 4 at (%i * 4 + %j) mod 4] () -> (%A[i, j] : memref<4x4xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// Loops of a GPU's threads stay, and so do loops with attributes.
// CHECK-LABEL: @bound
// CHECK: loop.for "b" %b = 1 block_x
// CHECK: loop.for "m" %m = 1
func.func @bound(%A: memref<1xf32>) attributes {outputs = 1 : i64} {
  loop.for "b" %b = 1 block_x {
    loop.for "m" %m = 1 {
      loop.block "A" [i = 1 at %b] () -> (%A[i] : memref<1xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    } attributes {mark}
  }
  func.return
}

// The init of a sum stands before the loop `k`. In the loop `j` it would come between the two blocks.
// CHECK-LABEL: @init
// CHECK: loop.for "k" %k = 1
// CHECK: loop.block "B"
// CHECK: loop.block "S"
func.func @init(%A: memref<4xf32>, %S: memref<4xf32>, %B: memref<4xf32>) attributes {outputs = 2 : i64} {
  loop.for "k" %k = 1 {
    loop.for "j" %j = 4 {
      loop.block "B" [j = 4 at %j] (%s = %S[j] : memref<4xf32>) -> (%B[j] : memref<4xf32>) {
        loop.yield %s : f32
      }
      loop.block "S" [j = 4 at %j, reduce k = 1 at %k] combine [add] (%a = %A[j] : memref<4xf32>)
          -> (%S[j] : memref<4xf32>) {
        loop.yield %a : f32
      }
    }
  }
  func.return
}

// The init stays before the sum.
// CHECK-LABEL: @init_that_stays
// CHECK-NEXT: loop.for "j" %j = 4 {
// CHECK-NEXT: loop.block "S" [j = 4 at %j, reduce k = 1 at 0] combine [add]
func.func @init_that_stays(%A: memref<4xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "j" %j = 4 {
    loop.for "k" %k = 1 {
      loop.block "S" [j = 4 at %j, reduce k = 1 at %k] combine [add] (%a = %A[j] : memref<4xf32>)
          -> (%S[j] : memref<4xf32>) {
        loop.yield %a : f32
      }
    }
  }
  func.return
}

// CHECK-LABEL: @dead_buffers
// CHECK-NOT: loop.alloc
// CHECK-NOT: loop.constant
// CHECK-NOT: "T"
// CHECK: loop.block "A"
func.func @dead_buffers(%A: memref<4xf32>) attributes {outputs = 1 : i64} {
  %W = loop.constant "W" dense<1.0> : tensor<4xf32>
  %T = loop.alloc "T" : memref<4xf32>
  %U = loop.alloc "U" : memref<4xf32>
  loop.for "i" %i = 4 {
    loop.block "T" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
    loop.block "U" [i = 4 at %i] (%t = %T[i] : memref<4xf32>) -> (%U[i] : memref<4xf32>) {
      loop.yield %t : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "A" [i = 4 at %i] () -> (%A[i] : memref<4xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// A guard that never holds removes a block; the init of a sum is needed still.
// CHECK-LABEL: @never
// CHECK-NOT: loop.block "A"
// CHECK: loop.block "S"
func.func @never(%X: memref<4xf32>, %A: memref<4xf32>, %S: memref<f32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 4 {
    loop.block "A" [i = 4 at %i] where (%i - 4 >= 0) () -> (%A[i] : memref<4xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
    loop.block "S" [reduce i = 4 at %i] where (%i - 4 >= 0) combine [add] (%x = %X[i] : memref<4xf32>)
        -> (%S[] : memref<f32>) {
      loop.yield %x : f32
    }
  }
  func.return
}

// -----

// A script stays as it is: the handles that its steps consume are no values to merge.
// CHECK-LABEL: @script
// CHECK-COUNT-2: sched.get_block %f "A"
// CHECK-NOT: sched.get_block
transform.named_sequence @script(%f: !transform.any_op {transform.readonly}) {
  %0 = sched.get_block %f "A"
  %1 = sched.get_block %f "A"
  transform.yield
}
