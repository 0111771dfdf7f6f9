// RUN: strata-opt %s | strata-opt | filecheck %s

// CHECK-LABEL: @syntax
func.func @syntax(%A: memref<8x8xf32>, %n: index, %x: f32) {
  // CHECK: affine.for %i = 0 to 8 {
  affine.for %i = 0 to 8 {
    // CHECK-NEXT: %m = affine.max affine_map<(d0)[s0] -> (d0, s0)>(%i)[%n]
    %m = affine.max affine_map<(d0)[s0] -> (d0, s0)>(%i)[%n]
    // CHECK-NEXT: affine.parallel (%j, %k) = (0, max(%i, 2)) to (min(%i + 4, 8), %n) step (1, 2) {
    affine.parallel (%j, %k) = (0, max(%i, 2)) to (min(%i + 4, 8), %n) step (1, 2) {
      // CHECK-NEXT: affine.if affine_set<(d0)[s0] : ((d0 + (s0 * -1)) == 0)>(%j)[%m] {
      affine.if affine_set<(d0)[s0] : (d0 - s0 == 0)>(%j)[%m] {
        // CHECK-NEXT: affine.store %x, %A[%j, 0] : memref<8x8xf32>
        affine.store %x, %A[%j, 0] : memref<8x8xf32>
      // CHECK-NEXT: } else {
      } else {
        // CHECK-NEXT: %y = affine.if affine_set<(d0) : ((d0 + -1) >= 0)>(%j) -> (f32) {
        %y = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) -> f32 {
          // CHECK-NEXT: affine.yield %x : f32
          affine.yield %x : f32
        } else {
          affine.yield %x : f32
        }
        affine.store %y, %A[%j, 1] : memref<8x8xf32>
      }
    }
  }
  return
}

// The syntax of these is read, the generic one printed.
// CHECK-LABEL: @read
func.func @read(%A: memref<8xf32>, %B: memref<8xf32>, %zero: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // CHECK: "scf.parallel"(%c0, %c0, %c8, %c8, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  // CHECK: scf.reduce
  scf.parallel (%i, %j) = (%c0, %c0) to (%c8, %c8) step (%c1, %c1) {
    memref.store %zero, %A[%i] : memref<8xf32>
  }
  // CHECK: %sum = "scf.parallel"(%c0, %c8, %c1, %zero)
  %sum = scf.parallel (%i) = (%c0) to (%c8) step (%c1) init (%zero) -> f32 {
    scf.reduce(%zero : f32) {
    ^bb0(%l: f32, %r: f32):
      scf.reduce.return %l : f32
    }
  }
  // CHECK: "memref.copy"(%A, %B)
  memref.copy %A, %B : memref<8xf32> to memref<8xf32>
  return
}
