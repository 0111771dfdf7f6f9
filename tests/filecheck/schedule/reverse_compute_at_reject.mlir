// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// It is not inside the loop already.
// PAYLOAD: producer_consumer_fused D(i)
  // expected-error@below {{reverse_compute_at: block 'D': it is inside loop 'i' already}}
  sched.reverse_compute_at %d at %i

// -----

// It reads what the loop writes.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>, %E: memref<10xf32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 {
    loop.block "E" [i = 10 at %j]
        (%x = %A[i] : memref<10xf32>) -> (%E[i] : memref<10xf32>) origin "E"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script D(i) E()
  // expected-error@below {{reverse_compute_at: block 'E': it reads nothing that loop 'i' writes}}
  sched.reverse_compute_at %e at %i

// -----

// It is no reduction.
// PAYLOAD: row_sums_of_doubles T(h, e) S()
  // expected-error@below {{reverse_compute_at: block 'S': it is a reduction, which is spread over several iterations}}
  sched.reverse_compute_at %s at %h

// -----

// It reads one element at its own axes.
// PAYLOAD: double_twice T(h) D() s/%D: memref<10xf32>/%D: memref<5xf32>/ s/%i = 10/%i = 5/ s/10 at %i/5 at %i/ \
//   s/%x = %T[i]/%x = %T[i * 2]/ s/%D[i] : memref<10xf32>/%D[i] : memref<5xf32>/
  // expected-error@below {{reverse_compute_at: block 'D': it does not read one element at its own axes}}
  sched.reverse_compute_at %d at %h

// -----

// It runs once: not in a loop that repeats the producer and is none of its reduction's.
func.func @f(%A: memref<6xf32>, %D: memref<6xf32>) attributes {outputs = 1 : i64} {
  %C = loop.alloc "C" : memref<6xf32>
  loop.for "m" %m = 6 {
    loop.for "again" %a = 2 {
      loop.block "C" [m = 6 at %m]
          (%x = %A[m] : memref<6xf32>) -> (%C[m] : memref<6xf32>) origin "C"[m] {
        %0 = arith.mulf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.block "D" [m = 6 at %m]
        (%x = %C[m] : memref<6xf32>) -> (%D[m] : memref<6xf32>) origin "D"[m] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script C(m, a) D()
  // expected-error@below {{reverse_compute_at: block 'D': iterations of loop 'again' have the same region: it would run more than once}}
  sched.reverse_compute_at %d at %a

// -----

// The regions of two iterations do not overlap.
func.func @f(%A: memref<12xf32>, %D: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<8xf32>
  loop.for "h" %h = 6 {
    loop.for "e" %e = 3 {
      loop.block "T" [i = 8 at %h + %e]
          (%x = %A[i] : memref<12xf32>) -> (%T[i] : memref<8xf32>) origin "T"[i] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 8 {
    loop.block "D" [i = 8 at %i]
        (%x = %T[i] : memref<8xf32>) -> (%D[i] : memref<8xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T(h, e) D()
  // expected-error@below {{reverse_compute_at: block 'D': the regions of iterations of loop 'h' overlap}}
  sched.reverse_compute_at %d at %h

// -----

// The region is a box that moves.
// PAYLOAD: double_twice T(h) D() s/at %h]/at (%h + 5) mod 10]/
  // expected-error@below {{reverse_compute_at: block 'D': the region of one iteration is not a box that moves}}
  sched.reverse_compute_at %d at %h

// -----

// The loop produces all that it reads.
// PAYLOAD: concatenation T(h) D()
  // expected-error@below {{reverse_compute_at: block 'D': loop 'h' does not produce all of 'T' that it reads}}
  sched.reverse_compute_at %d at %h

// -----

// Its axes are bound apart.
// PAYLOAD: double_twice T(h) D() s/%D: memref<10xf32>/%D: memref<10x10xf32>/ s/at %i]/at %i, j = 10 at %i]/ \
//   s/(%D[i] : memref<10xf32>) origin "D"[i]/(%D[i, j] : memref<10x10xf32>) origin "D"[i, j]/
  // expected-error@below {{reverse_compute_at: block 'D': its axes 'i' and 'j' are tied to each other by loop 'i'}}
  sched.reverse_compute_at %d at %h

// -----

// What it reads besides lives there.
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
    %U = loop.alloc "U" : memref<1xf32>
    loop.block "U" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%U[0] : memref<1xf32>) origin "U"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
    loop.block "D" [i = 10 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %U[0] : memref<1xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.mulf %x, %y : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T(h) D()
  // expected-error@below {{reverse_compute_at: block 'D': buffer 'U' lives in loop 'i' only}}
  sched.reverse_compute_at %d at %h

// -----

// What it reads besides has been written there.
// PAYLOAD: two_producers T(h) D()
  // expected-error@below {{reverse_compute_at: D[0] reads U[0] before U[0] has been written}}
  sched.reverse_compute_at %d at %h

// -----

// It consumes a part of what the loop produces, and would run for all of it.
// PAYLOAD: double_twice T(h) D() s/%i = 10/%i = 4/ s/at %i]/at %i + 6]/
  // expected-error@below {{reverse_compute_at: block 'D': loop 'h' produces elements of 'T' that it does not read}}
  sched.reverse_compute_at %d at %h
