// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The factors must cover the extent.
// PAYLOAD: double D(i)
  // expected-error@below {{split: loop 'i': the factors 2 x 4 do not cover its extent 10}}
  %o, %n = sched.split %i by [2, 4] : !sched.loop, !sched.loop

// -----

// Parameters must be positive as well.
// PAYLOAD: double D(i)
  %t = sched.sample_categorical [0] probabilities [1.0]
  // expected-error@below {{split: loop 'i': the factors [0] are not positive with at most one left open}}
  %o = sched.split %i by [%t] : !sched.loop

// -----

// Only a serial loop is split.
// PAYLOAD: double D(i) s/%i = 10/%i = 10 parallel/
  // expected-error@below {{split: loop 'i': it is parallel already, not serial}}
  %o, %n = sched.split %i by [2, 5] : !sched.loop, !sched.loop

// -----

// Padding is for temporaries.
// PAYLOAD: double D(i)
  // expected-error@below {{split: loop 'i': 'D' is an argument of the function and cannot be padded}}
  %o, %n = sched.split %i by [-1, 4] tail "pad" : !sched.loop, !sched.loop

// -----

// Padding is for spatial axes.
// PAYLOAD: row_sums S(i, k)
  // expected-error@below {{split: loop 'k': it binds the reduction 'k' of block 'S'; guard it instead}}
  %o, %n = sched.split %k by [-1, 4] tail "pad" : !sched.loop, !sched.loop

// -----

// A guarded block is not padded.
// PAYLOAD: producer_consumer_10 T(i)
  %a, %b = sched.split %i by [-1, 3] : !sched.loop, !sched.loop
  // expected-error@below {{split: loop 'i.0': block 'T' is guarded already and cannot be padded}}
  %o, %n = sched.split %a by [-1, 3] tail "pad" : !sched.loop, !sched.loop

// -----

// A loop that binds no axis is not padded: its blocks would run more often.
func.func @f(%A: memref<1xf32>, %D: memref<1xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<1xf32>
  loop.for "i" %i = 3 {
    loop.block "T" [a = 1 at 0]
        (%x = %A[a] : memref<1xf32>) -> (%T[a] : memref<1xf32>) origin "T"[a] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.block "D" [a = 1 at 0]
      (%x = %T[a] : memref<1xf32>) -> (%D[a] : memref<1xf32>) origin "D"[a] {
    %0 = arith.addf %x, %x : f32
    loop.yield %0 : f32
  }
  func.return
}

// PAYLOAD: script T(i)
  // expected-error@below {{split: loop 'i': block 'T' would run more often, not on more elements}}
  %o, %n = sched.split %i by [-1, 2] tail "pad" : !sched.loop, !sched.loop

// -----

// A loop that has been split is gone.
// PAYLOAD: double D(i)
  %d2 = sched.get_block %f "D"
  %j = sched.get_loops %d2 : !sched.loop
  %o, %n = sched.split %i by [2, 5] : !sched.loop, !sched.loop
  // expected-error@below {{split: loop 'i': it has been consumed by 'split'}}
  %p, %q = sched.split %j by [2, 5] : !sched.loop, !sched.loop

// -----

// Under a layout that wraps, what runs over would land on elements in use.
func.func @f(%A: memref<4x4xf32>, %D: memref<4x4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4x4xf32>
  loop.for "i" %i = 4 {
    loop.for "j" %j = 4 {
      loop.block "T" [i = 4 at %i, j = 4 at %j]
          (%x = %A[i, j] : memref<4x4xf32>) -> (%T[i, (i + j) mod 4] : memref<4x4xf32>) origin "T"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 4 {
    loop.for "j" %j = 4 {
      loop.block "D" [i = 4 at %i, j = 4 at %j]
          (%x = %T[i, (i + j) mod 4] : memref<4x4xf32>) -> (%D[i, j] : memref<4x4xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script T(i, j)
  // expected-error@below {{split: loop 'j': padded, it would write the element of 'T' that T[0,0] writes}}
  %o, %n = sched.split %j by [-1, 3] tail "pad" : !sched.loop, !sched.loop
