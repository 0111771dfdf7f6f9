// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The body touches the buffer.
// PAYLOAD: matmul_doubled C(m, n, k)
  // expected-error@below {{stage: loop 'm': its body does not touch 'D'}}
  %in, %out = sched.stage %m "D" in "local"

// -----

// The buffer lives outside.
func.func @f(%A: memref<4x10xf32>, %D: memref<4x10xf32>) attributes {outputs = 1 : i64} {
  loop.for "m" %m = 4 {
    %T = loop.alloc "T" : memref<10xf32>
    loop.for "n" %n = 10 {
      loop.block "T" [m = 4 at %m, n = 10 at %n]
          (%x = %A[m, n] : memref<4x10xf32>) -> (%T[n] : memref<10xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
    loop.for "q" %q = 10 {
      loop.block "D" [m = 4 at %m, n = 10 at %q]
          (%x = %T[n] : memref<10xf32>) -> (%D[m, n] : memref<4x10xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script D(m, q)
  // expected-error@below {{stage: loop 'm': 'T' lives inside it already}}
  %in, %out = sched.stage %m "T" in "local"

// -----

// An init is in the same iteration, or apart.
// PAYLOAD: matmul_mkn C(m, k, n)
  // expected-error@below {{stage: loop 'k': the init of block 'C' stands outside; decompose_reduction first}}
  %in, %out = sched.stage %k "C" in "local"

// -----

// There is no copy out of what is only read.
// PAYLOAD: matmul C(m, n, k)
  %in, %out = sched.stage %m "A" in "shared"
  // expected-error@below {{set_scope: there is no such block: nothing had to be copied}}
  sched.set_scope %out "local"
