func.func @f(%T: memref<9x8xf32>, %I: memref<6xi32>, %Z: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %E = loop.alloc "E" : memref<9x8xf32>
  loop.for "r" %r = 9 {
    loop.for "c" %c = 8 {
      loop.block "E" [r = 9 at %r, c = 8 at %c] (%t = %T[r, c] : memref<9x8xf32>) -> (%E[r, c] : memref<9x8xf32>) origin "E"[r, c] {
        %0 = arith.negf %t : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i = 6 {
    loop.for "d" %d = 8 {
      loop.gather "Z" [i = 6 at %i, d = 8 at %d] %E[%I[i], d] else 0.0 : memref<9x8xf32>, memref<6xi32>
          -> (%Z[i, d] : memref<6x8xf32>) origin "Z"[i, d]
    }
  }
  func.return
}
