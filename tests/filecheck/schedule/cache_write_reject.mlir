// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// Its targets have one shape.
// PAYLOAD: double D() s/%D: memref<10xf32>/%D: memref<10xf32>, %E: memref<2x10xf32>/ s/outputs = 1/outputs = 2/ \
//   s/(%D[i] : memref<10xf32>)/(%D[i] : memref<10xf32>, %E[0, i] : memref<2x10xf32>)/ \
//   s/yield %0 : f32/yield %0, %0 : f32, f32/
  // expected-error@below {{cache_write: block 'D': its targets have different shapes}}
  %copy = sched.cache_write %d in "local"

// -----

// Nothing has touched the target before.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  loop.for "h" %h = 5 {
    loop.block "E" [i = 5 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "E"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "g" %g = 5 {
    loop.block "D" [i = 5 at %g]
        (%x = %A[i] : memref<10xf32>) -> (%D[i + 5] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script D()
  // expected-error@below {{cache_write: block 'D': block 'E' uses 'D' before it}}
  %copy = sched.cache_write %d in "local"

// -----

// A copy of elements that the block does not set would change an argument in place.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) {
  loop.for "g" %g = 5 {
    loop.block "D" [i = 5 at %g]
        (%x = %A[i] : memref<10xf32>) -> (%D[i + 5] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script D()
  // expected-error@below {{cache_write: block 'D': it does not set every element of 'D', which is changed in place}}
  %copy = sched.cache_write %d in "local"

// -----

// So would one of sums that begin with the elements as they are.
func.func @f(%A: memref<10xf32>, %D: memref<f32>) {
  loop.for "g" %g = 10 {
    loop.block "D" [reduce i = 10 at %g] combine [add] accumulate
        (%x = %A[i] : memref<10xf32>) -> (%D[] : memref<f32>) origin "D"[i] {
      loop.yield %x : f32
    }
  }
  func.return
}

// PAYLOAD: script D()
  // expected-error@below {{cache_write: block 'D': it does not set every element of 'D', which is changed in place}}
  %copy = sched.cache_write %d in "local"
