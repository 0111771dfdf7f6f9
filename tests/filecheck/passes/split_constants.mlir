// RUN: strata-opt %s -p 'split-constants{names=W,b function=packed}' | strata-opt - -p 'split-constants{names=W function=chain}' | strata-opt - -p 'split-constants{names=W function=early}' | strata-opt - -p 'split-constants{names=W function=twice}' | strata-opt - -p 'split-constants{names=W function=in_place}' | strata-opt - -p 'split-constants{names=W function=inner}' | filecheck %s

// W is packed before, and is no argument of what is called; b is read there, beside what was packed.
// CHECK-LABEL: @packed.prepare
// CHECK-SAME: (%W: memref<4x6xf32>, %P: memref<6x4xf32>) attributes {outputs = 1 : i64, aligned = array<i64: 1>}
// CHECK-NEXT: loop.for "i"
// CHECK-NEXT: loop.for "j"
// CHECK-NEXT: loop.block "P"
// CHECK-LABEL: @packed(
// CHECK-SAME: %X: memref<4xf32>, %b: memref<6xf32>, %P: memref<6x4xf32>, %Y: memref<6xf32>)
// CHECK-SAME: attributes {outputs = 1 : i64, aligned = array<i64: 1, 2>}
// CHECK-NEXT: %S = loop.alloc "S"
// CHECK-NEXT: loop.for "j"
// CHECK-NEXT: loop.for "i"
// CHECK-NEXT: loop.block "S"
// CHECK: loop.block "Y"
// CHECK-NOT: "P"
func.func @packed(%X: memref<4xf32>, %W: memref<4x6xf32>, %b: memref<6xf32>, %Y: memref<6xf32>) attributes {outputs = 1 : i64} {
  %P = loop.alloc "P" : memref<6x4xf32>
  %S = loop.alloc "S" : memref<6xf32>
  loop.for "i" %i = 4 {
    loop.for "j" %j = 6 {
      loop.block "P" [j = 6 at %j, i = 4 at %i] (%w = %W[i, j] : memref<4x6xf32>) -> (%P[j, i] : memref<6x4xf32>) {
        loop.yield %w : f32
      }
    }
  }
  loop.for "j" %j = 6 {
    loop.for "i" %i = 4 {
      loop.block "S" [j = 6 at %j, reduce i = 4 at %i] combine [add]
          (%p = %P[j, i] : memref<6x4xf32>, %x = %X[i] : memref<4xf32>) -> (%S[j] : memref<6xf32>) {
        %0 = arith.mulf %p, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "j" %j = 6 {
    loop.block "Y" [j = 6 at %j] (%s = %S[j] : memref<6xf32>, %c = %b[j] : memref<6xf32>) -> (%Y[j] : memref<6xf32>) {
      %0 = arith.addf %s, %c : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// What only the preparation uses is its own temporary, a local one too; one that needs no argument is prepared as well.
// CHECK-LABEL: @chain.prepare
// CHECK-SAME: (%W: memref<4xf32>, %U: memref<4xf32>, %Z: memref<4xf32>)
// CHECK-NEXT: %T = loop.alloc "T" local
// CHECK: loop.block "T"
// CHECK: loop.block "U"
// CHECK: loop.block "Z"
// CHECK-LABEL: @chain(
// CHECK-SAME: %X: memref<4xf32>, %U: memref<4xf32>, %Z: memref<4xf32>, %Y: memref<4xf32>)
// CHECK-NEXT: loop.for
// CHECK-NEXT: loop.block "Y"
func.func @chain(%X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" local : memref<4xf32>
  %U = loop.alloc "U" : memref<4xf32>
  %Z = loop.alloc "Z" : memref<4xf32>
  loop.for "i" %i = 4 {
    loop.block "T" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "U" [i = 4 at %i] (%t = %T[i] : memref<4xf32>) -> (%U[i] : memref<4xf32>) {
      loop.yield %t : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Z" [i = 4 at %i] () -> (%Z[i] : memref<4xf32>) {
      %0 = arith.constant 0.0 : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Y" [i = 4 at %i] (%u = %U[i] : memref<4xf32>, %z = %Z[i] : memref<4xf32>, %x = %X[i] : memref<4xf32>)
        -> (%Y[i] : memref<4xf32>) {
      %0 = arith.addf %u, %x : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

// T is read before it is written a second time, so neither writing can move; and a local T could not cross.
// CHECK-NOT: @early.prepare
// CHECK-LABEL: @early(
// CHECK-SAME: %X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>, %Z: memref<4xf32>)
// CHECK: loop.block "T0"
// CHECK: loop.block "Y"
// CHECK: loop.block "T1"
// CHECK: loop.block "L"
// CHECK: loop.block "Z"
func.func @early(%X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>, %Z: memref<4xf32>) attributes {outputs = 2 : i64} {
  %T = loop.alloc "T" : memref<4xf32>
  %L = loop.alloc "L" local : memref<4xf32>
  loop.for "i" %i = 4 {
    loop.block "T0" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Y" [i = 4 at %i] (%t = %T[i] : memref<4xf32>, %x = %X[i] : memref<4xf32>) -> (%Y[i] : memref<4xf32>) {
      %0 = arith.addf %t, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "T1" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      %0 = arith.addf %w, %w : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "L" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%L[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Z" [i = 4 at %i] (%t = %T[i] : memref<4xf32>, %l = %L[i] : memref<4xf32>, %x = %X[i] : memref<4xf32>)
        -> (%Z[i] : memref<4xf32>) {
      %0 = arith.addf %t, %x : f32
      %1 = arith.addf %0, %l : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

// A temporary that is filled in two steps moves with both; one that X is added to does not.
// CHECK-LABEL: @twice.prepare
// CHECK-SAME: (%W: memref<4xf32>, %T: memref<4xf32>)
// CHECK: loop.block "T0"
// CHECK: loop.block "T1"
// CHECK-LABEL: @twice(
// CHECK-SAME: %X: memref<4xf32>, %W: memref<4xf32>, %T: memref<4xf32>, %Y: memref<4xf32>)
// CHECK-NEXT: %U = loop.alloc "U"
// CHECK: loop.block "U0"
// CHECK: loop.block "U1"
func.func @twice(%X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4xf32>
  %U = loop.alloc "U" : memref<4xf32>
  loop.for "i" %i = 2 {
    loop.block "T0" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 2 {
    loop.block "T1" [i = 4 at %i + 2] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "U0" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%U[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "U1" [i = 4 at %i] (%u = %U[i] : memref<4xf32>, %x = %X[i] : memref<4xf32>) -> (%U[i] : memref<4xf32>) {
      %0 = arith.addf %u, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Y" [i = 4 at %i] (%t = %T[i] : memref<4xf32>, %u = %U[i] : memref<4xf32>) -> (%Y[i] : memref<4xf32>) {
      %0 = arith.addf %t, %u : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// Without outputs what crosses comes last.
// CHECK-LABEL: @in_place.prepare
// CHECK-LABEL: @in_place(
// CHECK-SAME: %X: memref<4xf32>, %T: memref<4xf32>) attributes {outputs = 0 : i64, aligned = array<i64: 1>}
func.func @in_place(%X: memref<4xf32>, %W: memref<4xf32>) {
  %T = loop.alloc "T" : memref<4xf32>
  loop.for "i" %i = 4 {
    loop.block "T" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %w : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "X" [i = 4 at %i] (%x = %X[i] : memref<4xf32>, %t = %T[i] : memref<4xf32>) -> (%X[i] : memref<4xf32>) {
      %0 = arith.addf %x, %t : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// A buffer that lives inside a nest moves with it.
// CHECK-LABEL: @inner.prepare
// CHECK-SAME: (%W: memref<4xf32>, %T: memref<4xf32>)
// CHECK-NEXT: loop.for "i"
// CHECK-NEXT: %L = loop.alloc "L"
// CHECK-LABEL: @inner(
// CHECK-SAME: %X: memref<4xf32>, %T: memref<4xf32>, %Y: memref<4xf32>)
func.func @inner(%X: memref<4xf32>, %W: memref<4xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4xf32>
  loop.for "i" %i = 4 {
    %L = loop.alloc "L" : memref<1xf32>
    loop.block "L" [i = 4 at %i] (%w = %W[i] : memref<4xf32>) -> (%L[0] : memref<1xf32>) {
      loop.yield %w : f32
    }
    loop.block "T" [i = 4 at %i] (%l = %L[0] : memref<1xf32>) -> (%T[i] : memref<4xf32>) {
      loop.yield %l : f32
    }
  }
  loop.for "i" %i = 4 {
    loop.block "Y" [i = 4 at %i] (%t = %T[i] : memref<4xf32>, %x = %X[i] : memref<4xf32>) -> (%Y[i] : memref<4xf32>) {
      %0 = arith.addf %t, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
