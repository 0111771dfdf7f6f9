// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is no reduction.
func.func @f(%A: memref<4x10xf32>, %S: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4x10xf32>
  loop.for "h" %h = 4 {
    loop.for "e" %e = 10 {
      loop.block "T" [i = 4 at %h, k = 10 at %e]
          (%x = %A[i, k] : memref<4x10xf32>) -> (%T[i, k] : memref<4x10xf32>) origin "T"[i, k] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 4 {
    loop.for "k" %k = 10 {
      loop.block "S" [i = 4 at %i, reduce k = 10 at %k] combine [add]
          (%x = %T[i, k] : memref<4x10xf32>) -> (%S[i] : memref<4xf32>) origin "S"[i, k] {
        loop.yield %x : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{reverse_inline: block 'S': it is a reduction}}
  sched.reverse_inline %s

// -----

// Its producer is no reduction.
// PAYLOAD: matmul_doubled
// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it reads no temporary of a single block without reduction}}
  sched.reverse_inline %d

// -----

// It reads a temporary.
// PAYLOAD: double
// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it reads no temporary of a single block without reduction}}
  sched.reverse_inline %d

// -----

// Its producer has one target.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  %U = loop.alloc "U" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>, %U[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0, %0 : f32, f32
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
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': block 'T' writes several buffers}}
  sched.reverse_inline %d

// -----

// It is the only reader.
// PAYLOAD: two_consumers
// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it is not the only reader of 'T'}}
  sched.reverse_inline %d

// -----

// It reads once.
// PAYLOAD: stencil
// PAYLOAD: script
  %s = sched.get_block %f "S"
  // expected-error@below {{reverse_inline: block 'S': it reads 'T' more than once}}
  sched.reverse_inline %s

// -----

// It reads without a condition.
func.func @f(%A: memref<8xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "h" %h = 8 {
    loop.block "T" [i = 8 at %h]
        (%x = %A[i] : memref<8xf32>) -> (%T[i] : memref<8xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] where (-i + 7 >= 0) else 0.0 : memref<8xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it reads 'T' under a condition}}
  sched.reverse_inline %d

// -----

// It alone writes its target.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 5 {
    loop.block "T" [i = 5 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "g" %g = 5 {
    loop.block "U" [i = 5 at %g]
        (%x = %A[i] : memref<10xf32>) -> (%D[i + 5] : memref<10xf32>) origin "U"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 5 {
    loop.block "D" [i = 5 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': 'D' is written by another block as well}}
  sched.reverse_inline %d

// -----

// It reads at its own axes.
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
        (%x = %T[-i + 9] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it does not read one element of 'T' at its own axes}}
  sched.reverse_inline %d

// -----

// It reads all of the temporary.
func.func @f(%A: memref<10xf32>, %D: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "D" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<8xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %d = sched.get_block %f "D"
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

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it reads an element of 'T' more than once}}
  sched.reverse_inline %d

// -----

// It writes one element for each of its axes.
func.func @f(%A: memref<10xf32>, %D: memref<20xf32>) attributes {outputs = 1 : i64} {
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
        (%x = %T[i] : memref<10xf32>) -> (%D[i * 2] : memref<20xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': it does not write one element for each of its axes}}
  sched.reverse_inline %d

// -----

// What it reads besides is written before its producer.
// PAYLOAD: two_producers
// PAYLOAD: script
  %d = sched.get_block %f "D"
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

// PAYLOAD: script
  %d = sched.get_block %f "D"
  // expected-error@below {{reverse_inline: block 'D': 'B' is read before it}}
  sched.reverse_inline %d
