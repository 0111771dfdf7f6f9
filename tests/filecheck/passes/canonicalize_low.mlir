// RUN: strata-opt %s -canonicalize --split-input-file | filecheck %s

// Integers wrap at their width, floats are rounded once and overflow to infinity, NaN is the positive quiet one.
// CHECK-LABEL: @values
// CHECK-DAG: %[[I:.*]] = arith.constant -56 : i8
// CHECK-DAG: %[[X:.*]] = arith.constant -9223372036854775808 : index
// CHECK-DAG: %[[F:.*]] = arith.constant 0x7f800000 : f32
// CHECK-DAG: %[[N:.*]] = arith.constant 0x7fc00000 : f32
// CHECK-DAG: %[[Z:.*]] = arith.constant -0.000000e+00 : f32
// CHECK-DAG: %[[B:.*]] = arith.constant false
// CHECK-DAG: %[[H:.*]] = arith.constant 1.000{{.*}} : bf16
// CHECK: func.return %[[I]], %[[X]], %[[F]], %[[N]], %[[Z]], %[[B]], %[[H]]
func.func @values() -> (i8, index, f32, f32, f32, i1, bf16) {
  %c100 = arith.constant 100 : i8
  %i = arith.addi %c100, %c100 : i8
  %most = arith.constant 9223372036854775807 : index
  %c1 = arith.constant 1 : index
  %x = arith.addi %most, %c1 : index
  %big = arith.constant 3.0e38 : f32
  %f = arith.mulf %big, %big : f32
  %zero = arith.constant 0.0 : f32
  %n = arith.divf %zero, %zero : f32
  %minus = arith.constant -1.0e-30 : f32
  %small = arith.constant 1.0e-30 : f32
  %z = arith.mulf %minus, %small : f32
  %true = arith.constant true
  %b = arith.addi %true, %true : i1
  %one = arith.constant 1.001 : f32
  %h = arith.truncf %one : f32 to bf16
  func.return %i, %x, %f, %n, %z, %b, %h : i8, index, f32, f32, f32, i1, bf16
}

// What is undefined stays: a division by zero, the quotient and the conversion that overflow, a shift by all bits.
// CHECK-LABEL: @undefined
// CHECK: arith.divsi
// CHECK: arith.divsi
// CHECK: arith.fptosi
// CHECK: arith.shli
func.func @undefined() -> (i32, i32, i8, i32) {
  %c0 = arith.constant 0 : i32
  %m1 = arith.constant -1 : i32
  %least = arith.constant -2147483648 : i32
  %a = arith.divsi %m1, %c0 : i32
  %b = arith.divsi %least, %m1 : i32
  %big = arith.constant 1.0e3 : f32
  %c = arith.fptosi %big : f32 to i8
  %c32 = arith.constant 32 : i32
  %d = arith.shli %m1, %c32 : i32
  func.return %a, %b, %c, %d : i32, i32, i8, i32
}

// exp is rounded in more ways than one, and x * 0.0 is not 0.0 where x is NaN or negative; x + 0.0 is not x for -0.0.
// CHECK-LABEL: @inexact
// CHECK: math.exp
// CHECK: arith.mulf
// CHECK: arith.addf
func.func @inexact(%x: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant 0.0 : f32
  %0 = math.exp %one : f32
  %1 = arith.mulf %x, %zero : f32
  %2 = arith.addf %x, %zero : f32
  func.return %0, %1, %2 : f32, f32, f32
}

// CHECK-LABEL: @vectors
// CHECK-DAG: %[[V:.*]] = arith.constant dense<[2, 4, 6, 8]> : vector<4xi32>
// CHECK-DAG: %[[S:.*]] = arith.constant dense<3.000000e+00> : vector<4xf32>
// CHECK: func.return %[[V]], %[[S]]
func.func @vectors() -> (vector<4xi32>, vector<4xf32>) {
  %v = arith.constant dense<[1, 2, 3, 4]> : vector<4xi32>
  %0 = arith.addi %v, %v : vector<4xi32>
  %one = arith.constant 1.0 : f32
  %ones = vector.broadcast %one : f32 to vector<4xf32>
  %two = arith.constant dense<2.0> : vector<4xf32>
  %1 = arith.addf %ones, %two : vector<4xf32>
  func.return %0, %1 : vector<4xi32>, vector<4xf32>
}

// CHECK-LABEL: @identities
// CHECK-NEXT: func.return %x, %x, %x, %f, %f, %x
func.func @identities(%x: i32, %f: f32) -> (i32, i32, i32, f32, f32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %minus_zero = arith.constant -0.0 : f32
  %one = arith.constant 1.0 : f32
  %0 = arith.addi %c0, %x : i32
  %1 = arith.muli %x, %c1 : i32
  %2 = arith.andi %x, %x : i32
  %3 = arith.addf %minus_zero, %f : f32
  %4 = arith.divf %f, %one : f32
  %wide = arith.extsi %x : i32 to i64
  %5 = arith.trunci %wide : i64 to i32
  func.return %0, %1, %2, %3, %4, %5 : i32, i32, i32, f32, f32, i32
}

// CHECK-LABEL: @lanes
// CHECK-NEXT: func.return %v, %v, %x
func.func @lanes(%v: vector<4xf32>, %x: vector<4xi32>) -> (vector<4xf32>, vector<4xf32>, vector<4xi32>) {
  %one = arith.constant dense<1.0> : vector<4xf32>
  %least = arith.constant dense<0xff800000> : vector<4xf32>
  %c0 = arith.constant dense<0> : vector<4xi32>
  %0 = arith.mulf %one, %v : vector<4xf32>
  %1 = arith.maximumf %v, %least : vector<4xf32>
  %2 = arith.ori %x, %c0 : vector<4xi32>
  func.return %0, %1, %2 : vector<4xf32>, vector<4xf32>, vector<4xi32>
}

// CHECK-LABEL: @zeros
// CHECK: %[[C:.*]] = arith.constant 0 : i32
// CHECK-NOT: arith.subi
// CHECK-NOT: arith.muli
// CHECK: func.return
func.func @zeros(%x: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %0 = arith.subi %x, %x : i32
  %1 = arith.muli %x, %c0 : i32
  func.return %0, %1 : i32, i32
}

// An index of 64 bits does not fit i32.
// CHECK-LABEL: @index_casts
// CHECK-NEXT: arith.index_cast %i : index to i32
// CHECK-NEXT: %[[N:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK-NEXT: func.return %i, %[[N]]
func.func @index_casts(%i: index) -> (index, index) {
  %0 = arith.index_cast %i : index to i64
  %1 = arith.index_cast %0 : i64 to index
  %2 = arith.index_cast %i : index to i32
  %3 = arith.index_cast %2 : i32 to index
  func.return %1, %3 : index, index
}

// CHECK-LABEL: @choices
// CHECK-NEXT: %[[T:.*]] = arith.constant true
// CHECK-NEXT: func.return %a, %a, %c, %[[T]]
func.func @choices(%c: i1, %a: f32, %b: f32, %i: index) -> (f32, f32, i1, i1) {
  %true = arith.constant true
  %false = arith.constant false
  %0 = arith.select %true, %a, %b : f32
  %1 = arith.select %c, %a, %a : f32
  %2 = arith.select %c, %true, %false : i1
  %3 = arith.cmpi sle, %i, %i : index
  func.return %0, %1, %2, %3 : f32, f32, i1, i1
}

// CHECK-LABEL: @constants_last
// CHECK: %[[C:.*]] = arith.constant 7 : index
// CHECK: arith.addi %i, %[[C]]
// CHECK: arith.cmpi sgt, %i, %c4
func.func @constants_last(%i: index) -> (index, i1) {
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %0 = arith.addi %c4, %i : index
  %1 = arith.addi %0, %c3 : index
  %2 = arith.cmpi slt, %c4, %i : index
  func.return %1, %2 : index, i1
}

// CHECK-LABEL: @loops
// CHECK-NOT: scf.for
// CHECK-NOT: scf.if
// CHECK: memref.store %x, %A[%{{.*}}]
// CHECK-NEXT: func.return
func.func @loops(%A: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %false = arith.constant false
  scf.for %i = %c0 to %c1 step %c1 {
    memref.store %x, %A[%i] : memref<8xf32>
  }
  scf.for %i = %c1 to %c1 step %c1 {
    memref.store %x, %A[%i] : memref<8xf32>
  }
  scf.if %false {
    memref.store %x, %A[%c1] : memref<8xf32>
  }
  func.return
}

// CHECK-LABEL: @maps
// CHECK-DAG: %[[A:.*]] = arith.constant 13 : index
// CHECK-DAG: %[[M:.*]] = arith.constant 4 : index
// CHECK: func.return %[[A]], %i, %[[M]]
func.func @maps(%i: index) -> (index, index, index) {
  %c3 = arith.constant 3 : index
  %0 = affine.apply affine_map<(d0) -> (d0 * 4 + 1)>(%c3)
  %1 = affine.apply affine_map<(d0)[s0] -> (s0)>(%c3)[%i]
  %2 = affine.max affine_map<(d0) -> (d0, 4)>(%c3)
  func.return %0, %1, %2 : index, index, index
}

// CHECK-LABEL: @buffers
// CHECK-NEXT: func.return
func.func @buffers(%x: f32) {
  %c0 = arith.constant 0 : index
  %A = memref.alloc() : memref<4xf32>
  memref.store %x, %A[%c0] : memref<4xf32>
  memref.prefetch %A[%c0], write, locality<3>, data : memref<4xf32>
  memref.dealloc %A : memref<4xf32>
  func.return
}

// Loads stay where something reads them, stores to arguments and prefetches always.
// CHECK-LABEL: @effects
// CHECK-NEXT: memref.prefetch
// CHECK-NEXT: memref.store
// CHECK-NEXT: func.return
func.func @effects(%A: memref<f32>, %x: f32) {
  memref.prefetch %A[], read, locality<3>, data : memref<f32>
  memref.store %x, %A[] : memref<f32>
  %0 = memref.load %A[] : memref<f32>
  func.return
}

// What MLIR knows to be without effects, here too.
// CHECK-LABEL: @unused
// CHECK-NEXT: func.return
func.func @unused(%i: index, %i32: i32, %f: f32, %a: vector<4x8xf32>, %b: vector<8x2xf32>, %c: vector<4x2xf32>, %v: vector<8xf32>, %w: vector<4xf32>, %t: tensor<4xf32>, %m: memref<4x8xf32>) {
  %0 = arith.index_castui %i32 : i32 to index
  %1:2 = affine.delinearize_index %i into (4, 8) : index, index
  %2 = affine.linearize_index [%i, %i] by (4, 8) : index
  %3 = vector.contract {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>], iterator_types = ["parallel", "parallel", "reduction"], kind = #vector.kind<add>} %a, %b, %c : vector<4x8xf32>, vector<8x2xf32> into vector<4x2xf32>
  %4 = vector.outerproduct %w, %v : vector<4xf32>, vector<8xf32>
  %5:8 = vector.to_elements %v : vector<8xf32>
  %6 = vector.from_elements %f, %f : vector<2xf32>
  %7 = vector.shape_cast %a : vector<4x8xf32> to vector<32xf32>
  %8 = vector.transpose %a, [1, 0] : vector<4x8xf32> to vector<8x4xf32>
  %9 = vector.step : vector<4xindex>
  %10 = vector.constant_mask [3] : vector<4xi1>
  %11 = vector.extract_strided_slice %a {offsets = [0, 2], sizes = [2, 4], strides = [1, 1]} : vector<4x8xf32> to vector<2x4xf32>
  %12 = vector.insert_strided_slice %11, %a {offsets = [0, 2], strides = [1, 1]} : vector<2x4xf32> into vector<4x8xf32>
  %13 = vector.interleave %v, %v : vector<8xf32> -> vector<16xf32>
  %14, %15 = vector.deinterleave %v : vector<8xf32> -> vector<4xf32>
  %16 = vector.multi_reduction <add>, %a, %w [1] : vector<4x8xf32> to vector<4xf32>
  %17, %18 = vector.scan <add>, %a, %v {inclusive = true, reduction_dim = 0 : i64} : vector<4x8xf32>, vector<8xf32>
  %19 = tensor.bitcast %t : tensor<4xf32> to tensor<4xi32>
  %20 = memref.rank %m : memref<4x8xf32>
  %21 = memref.transpose %m (i, j) -> (j, i) : memref<4x8xf32> to memref<8x4xf32, strided<[1, 8]>>
  %22 = tensor.rank %t : tensor<4xf32>
  %23 = vector.vscale
  %26 = vector.type_cast %m : memref<4x8xf32> to memref<vector<4x8xf32>>
  func.return
}

// CHECK-LABEL: @branches
// CHECK-NEXT: %[[R:.*]] = arith.addi %x, %x : i32
// CHECK-NEXT: func.return %[[R]] : i32
func.func @branches(%x: i32) -> i32 {
  %true = arith.constant true
  cf.cond_br %true, ^then, ^otherwise
^then:
  %0 = arith.addi %x, %x : i32
  cf.br ^end(%0 : i32)
^otherwise:
  %1 = arith.muli %x, %x : i32
  cf.br ^end(%1 : i32)
^end(%r: i32):
  func.return %r : i32
}
