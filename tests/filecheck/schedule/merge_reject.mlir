// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A consumer would read what has not been written.
func.func @f(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %h = sched.get_loops %t : !sched.loop
  %s = sched.get_block %f "S"
  %i = sched.get_loops %s : !sched.loop
  // expected-error@below {{merge: S[0] reads T[2] before T[2] has been written}}
  %x = sched.merge %h, %i shift 1
  transform.yield
}

// -----

// The consumer does not come first.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 {
    loop.block "D" [i = 10 at %j]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'i': it does not come after loop 'j'}}
  %x = sched.merge %j, %i
  transform.yield
}

// -----

// A shift is not negative.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 {
    loop.block "D" [i = 10 at %j]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'j': the shift -1 is negative}}
  %x = sched.merge %i, %j shift -1
  transform.yield
}

// -----

// The loops stand beside each other.
func.func @f(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "T" [m = 6 at %m, n = 8 at %n]
          (%x = %A[m, n] : memref<6x8xf32>) -> (%T[m, n] : memref<6x8xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "m" %m = 6 {
    loop.for "n" %n = 8 {
      loop.block "D" [m = 6 at %m, n = 8 at %n]
          (%x = %T[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>) origin "D"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %m, %n = sched.get_loops %t : !sched.loop, !sched.loop
  %d = sched.get_block %f "D"
  %p, %q = sched.get_loops %d : !sched.loop, !sched.loop
  // expected-error@below {{merge: loop 'n': it does not stand beside loop 'm'}}
  %x = sched.merge %m, %q
  transform.yield
}

// -----

// Nothing stands between them.
func.func @f(%A: memref<4xf32>, %D: memref<4xf32>, %E: memref<4xf32>, %G: memref<4xf32>) attributes {outputs = 3 : i64} {
  loop.for "i" %i = 4 {
    loop.block "D" [i = 4 at %i]
        (%x = %A[i] : memref<4xf32>) -> (%D[i] : memref<4xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 4 {
    loop.block "E" [i = 4 at %j]
        (%x = %A[i] : memref<4xf32>) -> (%E[i] : memref<4xf32>) origin "E"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "l" %l = 4 {
    loop.block "G" [i = 4 at %l]
        (%x = %A[i] : memref<4xf32>) -> (%G[i] : memref<4xf32>) origin "G"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %d = sched.get_block %f "D"
  %i = sched.get_loops %d : !sched.loop
  %g = sched.get_block %f "G"
  %l = sched.get_loops %g : !sched.loop
  // expected-error@below {{merge: loop 'l': loop 'j' stands between it and loop 'i'}}
  %x = sched.merge %i, %l
  transform.yield
}

// -----

// Both are serial.
func.func @f(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "i" %i = 10 {
    loop.block "T" [i = 10 at %i]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "j" %j = 10 parallel {
    loop.block "D" [i = 10 at %j]
        (%x = %T[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %i = sched.get_loops %t : !sched.loop
  %d = sched.get_block %f "D"
  %j = sched.get_loops %d : !sched.loop
  // expected-error@below {{merge: loop 'j': it is parallel already, not serial}}
  %x = sched.merge %i, %j
  transform.yield
}
