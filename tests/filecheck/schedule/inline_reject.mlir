// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is no reduction.
// PAYLOAD: matmul_doubled
// PAYLOAD: script
  %c = sched.get_block %f "C"
  // expected-error@below {{inline: block 'C': it is a reduction, whose value takes a loop}}
  sched.inline %c

// -----

// It writes a temporary.
// PAYLOAD: double
// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{inline: block 'D': 'D' is an argument of the function, not a temporary}}
  sched.inline %d

// -----

// Something reads it.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': nothing reads 'T'}}
  sched.inline %t

// -----

// It alone writes the temporary.
// PAYLOAD: concatenation
// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': 'T' is written by block 'U' as well}}
  sched.inline %t

// -----

// It writes one element for each of its axes.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<20xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i * 2] : memref<20xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i * 2] : memref<20xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': it does not write one element for each of its axes}}
  sched.inline %t

// -----

// Each axis indexes an element.
func.func @f(%A: memref<10x3xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.for "e" %e = 3 {
      loop.block "T" [i = 10 at %h, j = 3 at %e]
          (%x = %A[i, j] : memref<10x3xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': its axis 'j' indexes no element}}
  sched.inline %t

// -----

// It writes all that is read.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<12xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<12xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i + 2] : memref<12xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': block 'D' reads elements of 'T' that it has not written in the iteration}}
  sched.inline %t

// -----

// What it reads is not overwritten before the last consumer has read.
// PAYLOAD: overwritten
// PAYLOAD: script
  %t = sched.get_block %f "T"
  // expected-error@below {{inline: block 'T': block 'V' writes its input 'U' before the last consumer has read}}
  sched.inline %t
