// RUN: strata-opt %s -p check-bounds --split-input-file --verify-diagnostics

func.func @constant(%A: memref<4xf32>) {
  %c = arith.constant 100000000 : index
  // expected-error@below {{@constant: 'memref.load' leaves %A, memref<4xf32>: index 0 is 100000000}}
  %v = memref.load %A[%c] : memref<4xf32>
  func.return
}

// -----

func.func @computed(%A: memref<3x4xf32>, %x: f32) {
  %c2 = arith.constant 2 : index
  %c-1 = arith.constant -1 : index
  %c = arith.muli %c2, %c-1 : index
  // expected-error@below {{'memref.store' leaves %A, memref<3x4xf32>: index 1 is -2}}
  memref.store %x, %A[%c2, %c] : memref<3x4xf32>
  func.return
}

// -----

func.func @loop(%A: memref<10xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c10 = arith.constant 10 : index
  scf.for %i = %c0 to %c10 step %c3 {
    %n = arith.addi %i, %c2 : index
    // expected-error@below {{index 0 is 11}}
    memref.store %x, %A[%n] : memref<10xf32>
  }
  func.return
}

// -----

func.func @parallel(%A: memref<10x4xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c5 = arith.constant 5 : index
  %c10 = arith.constant 10 : index
  "scf.parallel"(%c0, %c0, %c10, %c5, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    // expected-error@below {{index 1 is 4}}
    memref.store %x, %A[%i, %j] : memref<10x4xf32>
    scf.reduce
  }) : (index, index, index, index, index, index) -> ()
  func.return
}

// -----

func.func @lanes(%A: memref<10xf32>) {
  %c3 = arith.constant 3 : index
  // expected-error@below {{its last lane is at 10}}
  %v = vector.load %A[%c3] : memref<10xf32>, vector<8xf32>
  func.return
}

// -----

func.func @least(%A: memref<10xf32>, %n: index) {
  %c10 = arith.constant 10 : index
  %m = arith.maxsi %n, %c10 : index
  // expected-error@below {{index 0 is 10}}
  %v = memref.load %A[%m] : memref<10xf32>
  func.return
}

// -----

func.func @view(%A: memref<10xf32>) {
  // expected-error@below {{'memref.subview' leaves %A, memref<10xf32>: its index 0 goes to 10}}
  %v = memref.subview %A[4] [4] [2] : memref<10xf32> to memref<4xf32, strided<[2], offset: 4>>
  func.return
}
