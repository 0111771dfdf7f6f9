// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block writes a temporary, which nothing else wants.
// PAYLOAD: double D(i)
  // expected-error@below {{compute_at: block 'D': 'D' is an argument of the function, not a temporary}}
  sched.compute_at %d at %i

// -----

// It alone writes the temporary.
// PAYLOAD: concatenation T(h) D(i)
  // expected-error@below {{compute_at: block 'T': 'T' is written by block 'U' as well}}
  sched.compute_at %t at %i

// -----

// It writes one element for each of its spatial axes.
// PAYLOAD: double_twice T(h) D(i) s/"T" : memref<10xf32>/"T" : memref<20xf32>/ \
//   s/%T[i] : memref<10xf32>/%T[i * 2] : memref<20xf32>/g
  // expected-error@below {{compute_at: block 'T': it does not write one element for each of its spatial axes}}
  sched.compute_at %t at %i

// -----

// Its axes are bound apart.
// PAYLOAD: double_twice T(h) D(i) s/"T" : memref<10xf32>/"T" : memref<10x10xf32>/ s/at %h]/at %h, j = 10 at %h]/ \
//   s/(%T[i] : memref<10xf32>) origin "T"[i]/(%T[i, j] : memref<10x10xf32>) origin "T"[i, j]/ \
//   s/%T[i] : memref<10xf32>/%T[i, i] : memref<10x10xf32>/
  // expected-error@below {{compute_at: block 'T': its axes 'i' and 'j' are tied to each other by loop 'h'}}
  sched.compute_at %t at %i

// -----

// An axis that indexes no element is bound by no loop.
// PAYLOAD: last_of_each_row T(h, e) D(i)
  // expected-error@below {{compute_at: block 'T': its axis 'j' indexes no element and is tied to the place where it stands}}
  sched.compute_at %t at %i

// -----

// It is not inside the loop already.
// PAYLOAD: stencil T(h)
  // expected-error@below {{compute_at: block 'T': it is inside loop 'h' already}}
  sched.compute_at %t at %h

// -----

// It has a consumer.
// PAYLOAD: double_twice T(h) D(i) s/%x = %T[i]/%x = %A[i]/
  // expected-error@below {{compute_at: block 'T': it has no consumer of 'T' but itself}}
  sched.compute_at %t at %i

// -----

// All its consumers are inside the loop.
// PAYLOAD: two_consumers T(h) D(i)
  // expected-error@below {{compute_at: block 'T': its consumer 'E' is not inside loop 'i'}}
  sched.compute_at %t at %i

// -----

// What it reads lives in the loop.
func.func @f(%A: memref<10x4xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    %U = loop.alloc "U" : memref<4xf32>
    loop.for "e" %e = 4 {
      loop.block "U" [i = 10 at %h, j = 4 at %e]
          (%x = %A[i, j] : memref<10x4xf32>) -> (%U[j] : memref<4xf32>) origin "U"[i, j] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
    loop.block "T" [i = 10 at %h]
        (%x = %U[0] : memref<4xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
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

// PAYLOAD: script T(h) D(i)
  // expected-error@below {{compute_at: block 'T': buffer 'U' lives in loop 'h' only}}
  sched.compute_at %t at %i

// -----

// What it reads has not been overwritten there.
// PAYLOAD: overwritten T(h) D(i)
  // expected-error@below {{compute_at: V[0] overwrites U[0] before T[0] has read it}}
  sched.compute_at %t at %i
