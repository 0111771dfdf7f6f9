// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The body touches the buffer.
// PAYLOAD: matmul_doubled

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{stage: loop 'm': its body does not touch 'D'}}
  %in, %out = sched.stage %m "D" in "local"
  transform.yield
}

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

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %m, %q = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{stage: loop 'm': 'T' lives inside it already}}
  %in, %out = sched.stage %m "T" in "local"
  transform.yield
}

// -----

// An init is in the same iteration, or apart.
// PAYLOAD: matmul_mkn

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %k, %n = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  // expected-error@below {{stage: loop 'k': the init of block 'C' stands outside; decompose_reduction first}}
  %in, %out = sched.stage %k "C" in "local"
  transform.yield
}

// -----

// There is no copy out of what is only read.
// PAYLOAD: matmul

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "C"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %in, %out = sched.stage %m "A" in "shared"
  // expected-error@below {{set_scope: there is no such block: nothing had to be copied}}
  sched.set_scope %out "local"
  transform.yield
}
