// RUN: strata-opt %s | strata-opt | filecheck %s

// CHECK-LABEL: func.func @f(
// CHECK: [[A:%\S+]] = unit.load %B[%k, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
// CHECK-NEXT: unit.store [[A]], %B[%c0, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
// CHECK-NEXT: unit.dot "dot.i32.u8i8x4" %c, %a, [[A]] : vector<16xi32>, vector<4xi8>, vector<64xi8> -> vector<16xi32>
// CHECK-NEXT: [[T:%\S+]] = unit.tile_load %X[%k, %c0] by %c64 : memref<32x32xbf16>
// CHECK-NEXT: [[D:%\S+]] = unit.tile_dot "tile.f32.bf16" [[T]], [[T]], [[T]]
// CHECK-NEXT: unit.tile_store [[D]], %Y[%c0, %c0] by %c64 : memref<16x16xf32>
func.func @f(%B: memref<8x16x4xi8>, %X: memref<32x32xbf16>, %Y: memref<16x16xf32>, %k: index, %c: vector<16xi32>, %a: vector<4xi8>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %b = unit.load %B[%k, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
  unit.store %b, %B[%c0, %c0, %c0] : memref<8x16x4xi8>, vector<64xi8>
  %d = unit.dot "dot.i32.u8i8x4" %c, %a, %b : vector<16xi32>, vector<4xi8>, vector<64xi8> -> vector<16xi32>
  %t = unit.tile_load %X[%k, %c0] by %c64 : memref<32x32xbf16>
  %e = unit.tile_dot "tile.f32.bf16" %t, %t, %t
  unit.tile_store %e, %Y[%c0, %c0] by %c64 : memref<16x16xf32>
  func.return
}
