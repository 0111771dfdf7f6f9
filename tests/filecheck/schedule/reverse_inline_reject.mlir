// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is no reduction.
// PAYLOAD: row_sums_of_doubles S()
  // expected-error@below {{reverse_inline: block 'S': it is a reduction}}
  sched.reverse_inline %s

// -----

// Its producer is no reduction.
// PAYLOAD: matmul_doubled D()
  // expected-error@below {{reverse_inline: block 'D': it reads no temporary of a single block without reduction}}
  sched.reverse_inline %d

// -----

// It reads a temporary.
// PAYLOAD: double D()
  // expected-error@below {{reverse_inline: block 'D': it reads no temporary of a single block without reduction}}
  sched.reverse_inline %d

// -----

// Its producer has one target.
// PAYLOAD: two_targets D()
  // expected-error@below {{reverse_inline: block 'D': block 'T' writes several buffers}}
  sched.reverse_inline %d

// -----

// It is the only reader.
// PAYLOAD: two_consumers D()
  // expected-error@below {{reverse_inline: block 'D': it is not the only reader of 'T'}}
  sched.reverse_inline %d

// -----

// It reads once.
// PAYLOAD: stencil S()
  // expected-error@below {{reverse_inline: block 'S': it reads 'T' more than once}}
  sched.reverse_inline %s

// -----

// It reads without a condition.
// PAYLOAD: double_or_zero D()
  // expected-error@below {{reverse_inline: block 'D': it reads 'T' under a condition}}
  sched.reverse_inline %d

// -----

// It alone writes its target.
// PAYLOAD: concatenation D() s/%i = 10/%i = 5/ s/10 at %i/5 at %i/ s/%T[i + 5]/%D[i + 5]/
  // expected-error@below {{reverse_inline: block 'D': 'D' is written by another block as well}}
  sched.reverse_inline %d

// -----

// It reads at its own axes.
// PAYLOAD: double_twice D() s/%x = %T[i]/%x = %T[-i + 9]/
  // expected-error@below {{reverse_inline: block 'D': it does not read one element of 'T' at its own axes}}
  sched.reverse_inline %d

// -----

// It reads all of the temporary.
// PAYLOAD: double_twice D() s/%D: memref<10xf32>/%D: memref<8xf32>/ s/%i = 10/%i = 8/ s/10 at %i/8 at %i/ \
//   s/%D[i] : memref<10xf32>/%D[i] : memref<8xf32>/
  // expected-error@below {{reverse_inline: block 'D': it does not read all of 'T'}}
  sched.reverse_inline %d

// -----

// It reads each element once.
func.func @f(%A: memref<10xf32>, %D: memref<10x3xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.for "j" %j = 3 {
      loop.block "D" [i = 10 at %i, j = 3 at %j]
          (%x = %T[i] : memref<10xf32>) -> (%D[i, j] : memref<10x3xf32>) origin "D"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script D()
  // expected-error@below {{reverse_inline: block 'D': it reads an element of 'T' more than once}}
  sched.reverse_inline %d

// -----

// It writes one element for each of its axes.
// PAYLOAD: double_twice D() s/%D: memref<10xf32>/%D: memref<20xf32>/ \
//   s/%D[i] : memref<10xf32>/%D[i * 2] : memref<20xf32>/
  // expected-error@below {{reverse_inline: block 'D': it does not write one element for each of its axes}}
  sched.reverse_inline %d

// -----

// What it reads besides is written before its producer.
// PAYLOAD: two_producers D()
  // expected-error@below {{reverse_inline: block 'D': block 'U' writes 'U', which it reads, after its producer has begun}}
  sched.reverse_inline %d

// -----

// Nobody reads the old value of its target after the producer.
func.func @f(%A: memref<10xf32>, %B: memref<10xf32>, %E: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "e" %e = 10 {
    loop.block "E" [i = 10 at %e]
        (%x = %B[i] : memref<10xf32>) -> (%E[i] : memref<10xf32>) origin "E"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%B[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script D()
  // expected-error@below {{reverse_inline: block 'D': 'B' is read before it}}
  sched.reverse_inline %d
