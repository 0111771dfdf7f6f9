// RUN: strata-opt %s -p loop-to-low,promote-buffers --split-input-file | filecheck %s

// A dot product of groups: the sums stay in a register while k runs, the group of A is shared by the lanes.
// CHECK-LABEL: func.func @f(
// CHECK: [[Z:%\S+]] = arith.constant dense<0> : vector<16xi32>
// CHECK: [[R:%\S+]] = scf.for [[K:%\S+]] = {{.*}} iter_args([[S:%\S+]] = [[Z]]) -> (vector<16xi32>) {
// CHECK-NEXT: [[K4:%\S+]] = arith.muli [[K]],
// CHECK-NEXT: [[A:%\S+]] = vector.load %A[%i, [[K4]]] : memref<1x8xi8>, vector<4xi8>
// CHECK-NEXT: [[B:%\S+]] = unit.load %B[[[K]], %c0, %c0] : memref<2x16x4xi8>, vector<64xi8>
// CHECK-NEXT: [[D:%\S+]] = unit.dot "dot.i32.u8i8x4" [[S]], [[A]], [[B]]
// CHECK-NEXT: scf.yield [[D]]
// CHECK: vector.store [[R]], %C[%i, %c0]
// PAYLOAD: dot_u8i8

// -----

// A fragment is a tile register: cleared, added to, stored; nothing of it is left in memory.
// CHECK-LABEL: func.func @tiles(
// CHECK-NOT: memref.alloc
// CHECK: [[Z:%\S+]] = arith.constant dense<0> : vector<256xi32>
// CHECK: [[A:%\S+]] = unit.tile_load %A[%c0, %c0] by %c64 : memref<16x32xbf16>
// CHECK-NEXT: [[B:%\S+]] = unit.tile_load %B[%c0, %c0, %c0] by %c64 : memref<16x16x2xbf16>
// CHECK-NEXT: [[D:%\S+]] = unit.tile_dot "tile.f32.bf16" [[Z]], [[A]], [[B]]
// CHECK-NEXT: unit.tile_store [[D]], %C[%c0, %c0] by %c64 : memref<16x16xf32>
// PAYLOAD: tile_matmul @tiles

// -----

// Rows become groups by two rounds of shuffles.
// CHECK-LABEL: func.func @zip(
// CHECK-COUNT-4: vector.load %B
// CHECK-COUNT-3: vector.shuffle
// CHECK-NEXT: unit.store %{{.*}}, %P[%c0, %c0] : memref<16x4xi8>, vector<64xi8>
func.func @zip(%B: memref<4x16xi8>, %P: memref<16x4xi8>) attributes {outputs = 1 : i64} {
  loop.for "j" %j = 16 tensorized "interleave.i8x4" {
    loop.for "k" %k = 4 tensorized {
      loop.block "P" [j = 16 at %j, k = 4 at %k]
          (%b = %B[k, j] : memref<4x16xi8>) -> (%P[j, k] : memref<16x4xi8>) origin "P"[j, k] {
        loop.yield %b : i8
      }
    }
  }
  func.return
}
