// RUN: not strata-opt %s -p loop-to-low --split-input-file 2>&1 | filecheck %s
// RUN: not strata-opt %s --split-input-file -p 'loop-to-low{policy=strict}' 2>&1 | filecheck %s --check-prefix=STRICT

// There is no such intrinsic.
// CHECK: error: @unknown: tensorize: there is no intrinsic 'dot.i8'
// PAYLOAD: dot_u8i8 @unknown s/dot.i32.u8i8x4/dot.i8/

// -----

// The nest has come to compute something else.
// CHECK: error: @other: loop 'j' is tensorized by 'dot.f32.bf16x2', but loops of 16 x 4 iterations are not the 16 x 2 of 'dot.f32.bf16x2'
// PAYLOAD: dot_u8i8 @other s/dot.i32.u8i8x4/dot.f32.bf16x2/

// -----

// Nothing but intrinsics touches a fragment.
// CHECK: error: block 'C.init' touches a fragment, which only a tensorized nest does
// PAYLOAD: tile_matmul @touched s/ tensorized "tile.zero.f32"// s/ tensorized {/ {/

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
