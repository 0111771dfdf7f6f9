// RUN: not strata-opt %s -p loop-to-gpu --split-input-file 2>&1 | filecheck %s

// CHECK: error: loop 'j' is bound to block_x inside the loop 'i', which each block runs
func.func @inside(%Y: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "j" %j = 8 block_x {
      loop.block "Y" [i = 4 at %i, j = 8 at %j] () -> (%Y[i, j] : memref<4x8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
// -----
// CHECK: error: loop 'i' is parallel, which a kernel does not have
func.func @parallel(%Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 parallel {
    loop.block "Y" [i = 4 at %i] () -> (%Y[i] : memref<4xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
// -----
// CHECK: error: buffer 'T' of scope global lives inside a kernel, where it is shared or local
func.func @scope(%Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 block_x {
    %T = loop.alloc "T" : memref<1xf32>
    loop.block "T" [i = 4 at %i] () -> (%T[0] : memref<1xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
    loop.block "Y" [i = 4 at %i] (%t = %T[0] : memref<1xf32>) -> (%Y[i] : memref<4xf32>) {
      loop.yield %t : f32
    }
  }
  func.return
}
// -----
// CHECK: error: threads share elements of the local buffer 'T': it has to be shared
func.func @local(%Y: memref<4x8xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 block_x {
    %T = loop.alloc "T" local : memref<8xf32>
    loop.for "j" %j = 8 thread_x {
      loop.block "T" [j = 8 at %j] () -> (%T[0] : memref<8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
    loop.for "j" %j_1 = 8 thread_x {
      loop.block "Y" [i = 4 at %i, j = 8 at %j_1] (%t = %T[0] : memref<8xf32>) -> (%Y[i, j] : memref<4x8xf32>) {
        loop.yield %t : f32
      }
    }
  }
  func.return
}
// -----
// CHECK: error: loop 'i' is bound to thread_x, and no block stands in it
func.func @nothing(%A: memref<4xf32>) {
  loop.for "i" %i = 2 thread_x {
    %U = loop.alloc "U" : memref<2xi32>
  }
  func.return
}
// -----
// CHECK: error: 'S' stands before the loop 'j' over blocks, behind which one block goes on
func.func @before(%Y: memref<4x8xf32>, %Z: memref<4xf32>) attributes {outputs = 2 : i64} {
  %S = loop.alloc "S" : memref<4xf32>
  loop.for "i" %i = 4 block_x {
    loop.block "S" [i = 4 at %i] () -> (%S[i] : memref<4xf32>) {
      %0 = arith.constant 1.0 : f32
      loop.yield %0 : f32
    }
    loop.for "j" %j = 8 block_y {
      loop.block "Y" [i = 4 at %i, j = 8 at %j] (%s = %S[i] : memref<4xf32>) -> (%Y[i, j] : memref<4x8xf32>) {
        loop.yield %s : f32
      }
    }
    loop.block "Z" [i = 4 at %i] (%y = %Y[i, 7] : memref<4x8xf32>) -> (%Z[i] : memref<4xf32>) {
      loop.yield %y : f32
    }
  }
  func.return
}
// -----
// CHECK: error: loop 'k' is bound to block_z, and stands behind the loop 'j' over blocks, where one block goes on
func.func @behind(%Y: memref<4x8xf32>, %Z: memref<4x3xf32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 4 block_x {
    loop.for "j" %j = 8 block_y {
      loop.block "Y" [i = 4 at %i, j = 8 at %j] () -> (%Y[i, j] : memref<4x8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
    loop.for "k" %k = 3 block_z {
      loop.block "Z" [i = 4 at %i, k = 3 at %k] (%y = %Y[i, k] : memref<4x8xf32>) -> (%Z[i, k] : memref<4x3xf32>) {
        loop.yield %y : f32
      }
    }
  }
  func.return
}
// -----
// CHECK: error: the shared buffer 'S' lives outside of the loop 'j', whose blocks of threads do not share it
func.func @on_chip(%Y: memref<4x8xf32>, %Z: memref<4xf32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 4 block_x {
    %S = loop.alloc "S" shared : memref<8xf32>
    loop.for "j" %j = 8 block_y {
      loop.block "S" [j = 8 at %j] () -> (%S[j] : memref<8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
      loop.block "Y" [i = 4 at %i, j = 8 at %j] (%s = %S[j] : memref<8xf32>) -> (%Y[i, j] : memref<4x8xf32>) {
        loop.yield %s : f32
      }
    }
    loop.block "Z" [i = 4 at %i] (%s = %S[3] : memref<8xf32>) -> (%Z[i] : memref<4xf32>) {
      loop.yield %s : f32
    }
  }
  func.return
}
// -----
// CHECK: error: loop 'i' is bound to block_x, as is the loop 'j' whose blocks arrive
func.func @same(%Y: memref<4x8xf32>, %Z: memref<4xf32>) attributes {outputs = 2 : i64} {
  loop.for "i" %i = 4 block_x {
    loop.for "j" %j = 8 block_x {
      loop.block "Y" [i = 4 at %i, j = 8 at %j] () -> (%Y[i, j] : memref<4x8xf32>) {
        %0 = arith.constant 1.0 : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Z" [i = 4 at %i] (%y = %Y[i, 7] : memref<4x8xf32>) -> (%Z[i] : memref<4xf32>) {
      loop.yield %y : f32
    }
  }
  func.return
}
