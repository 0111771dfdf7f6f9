// RUN: not strata-opt %s -p loop-to-low --split-input-file 2>&1 | filecheck %s
// RUN: not strata-opt %s --split-input-file -p 'loop-to-low{policy=strict}' 2>&1 | filecheck %s --check-prefix=STRICT

// There is no such intrinsic.
// CHECK: error: @unknown: tensorize: there is no intrinsic 'dot.i8'
func.func @unknown(%A: memref<1x8xui8>, %B: memref<2x16x4xi8>, %C: memref<1x16xi32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 1 {
    loop.for "k.0" %k.0 = 2 {
      loop.for "j" %j = 16 tensorized "dot.i8" {
        loop.for "k.1" %k.1 = 4 tensorized {
          loop.block "C" [i = 1 at %i, j = 16 at %j, reduce k = 8 at %k.0 * 4 + %k.1] combine [add]
              (%a = %A[i, k] : memref<1x8xui8>, %b = %B[k floordiv 4, j, k mod 4] : memref<2x16x4xi8>) -> (%C[i, j] : memref<1x16xi32>) origin "C"[i, j, k] {
            %0 = arith.extui %a : i8 to i32
            %1 = arith.extsi %b : i8 to i32
            %2 = arith.muli %0, %1 : i32
            loop.yield %2 : i32
          }
        }
      }
    }
  }
  func.return
}

// -----

// The nest has come to compute something else.
// CHECK: error: @other: loop 'j' is tensorized by 'dot.f32.bf16x2', but loops of 16 x 4 iterations are not the 16 x 2 of 'dot.f32.bf16x2'
func.func @other(%A: memref<1x8xui8>, %B: memref<2x16x4xi8>, %C: memref<1x16xi32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 1 {
    loop.for "k.0" %k.0 = 2 {
      loop.for "j" %j = 16 tensorized "dot.f32.bf16x2" {
        loop.for "k.1" %k.1 = 4 tensorized {
          loop.block "C" [i = 1 at %i, j = 16 at %j, reduce k = 8 at %k.0 * 4 + %k.1] combine [add]
              (%a = %A[i, k] : memref<1x8xui8>, %b = %B[k floordiv 4, j, k mod 4] : memref<2x16x4xi8>) -> (%C[i, j] : memref<1x16xi32>) origin "C"[i, j, k] {
            %0 = arith.extui %a : i8 to i32
            %1 = arith.extsi %b : i8 to i32
            %2 = arith.muli %0, %1 : i32
            loop.yield %2 : i32
          }
        }
      }
    }
  }
  func.return
}

// -----

// Nothing but intrinsics touches a fragment.
// CHECK: error: block 'C.init' touches a fragment, which only a tensorized nest does
func.func @touched(%A: memref<16x32xbf16>, %B: memref<16x16x2xbf16>, %C: memref<16x16xf32>) attributes {outputs = 1 : i64} {
  %C.fragment = loop.alloc "C.fragment" fragment : memref<16x16xf32>
  loop.for "i" %i = 16 {
    loop.for "j" %j = 16 {
      loop.block "C.init" [i = 16 at %i, j = 16 at %j] () -> (%C.fragment[i, j] : memref<16x16xf32>) {
        %0 = arith.constant 0.000000e+00 : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "i" %i_1 = 16 tensorized "tile.f32.bf16" {
    loop.for "j" %j_1 = 16 tensorized {
      loop.for "k.0" %k.0 = 16 tensorized {
        loop.for "k.1" %k.1 = 2 tensorized {
          loop.block "C" [i = 16 at %i_1, j = 16 at %j_1, reduce k = 32 at %k.0 * 2 + %k.1] combine [add] accumulate
              (%a = %A[i, k] : memref<16x32xbf16>, %b = %B[k floordiv 2, j, k mod 2] : memref<16x16x2xbf16>) -> (%C.fragment[i, j] : memref<16x16xf32>) origin "C"[i, j, k] {
            %0 = arith.extf %a : bf16 to f32
            %1 = arith.extf %b : bf16 to f32
            %2 = arith.mulf %0, %1 : f32
            loop.yield %2 : f32
          }
        }
      }
    }
  }
  loop.for "ax0" %ax0 = 16 tensorized "tile.store.f32" {
    loop.for "ax1" %ax1 = 16 tensorized {
      loop.block "C.fragment" [ax0 = 16 at %ax0, ax1 = 16 at %ax1]
          (%c.fragment = %C.fragment[ax0, ax1] : memref<16x16xf32>) -> (%C[ax0, ax1] : memref<16x16xf32>) {
        loop.yield %c.fragment : f32
      }
    }
  }
  func.return
}

// -----

// A fragment is made of whole tiles.
// CHECK: error: 'T' is a fragment of memref<8x16xf32>, where a tile is of 16 by 16 f32
func.func @small() {
  %T = loop.alloc "T" fragment : memref<8x16xf32>
  func.return
}

// -----

// The instruction rounds otherwise.
// STRICT: error: loop 'i': 'tile.f32.bf16' rounds otherwise, and the policy is strict
// PAYLOAD: tile_matmul @strict
