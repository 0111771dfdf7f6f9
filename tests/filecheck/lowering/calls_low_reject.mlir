// RUN: strata-opt %s -t llvm --split-input-file --verify-diagnostics

func.func @values(%A: memref<4xf32>) {
  // expected-error@below {{a call of @value that returns values has no form in LLVM IR}}
  %0 = func.call @value() : () -> f32
  func.return
}
func.func private @value() -> f32 {
  %0 = arith.constant 1.0 : f32
  func.return %0 : f32
}

// -----

func.func @parallel(%A: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    // expected-error@below {{a call of @group inside an scf.parallel has no form in LLVM IR}}
    func.call @group(%A) : (memref<4xf32>) -> ()
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}
func.func private @group(%A: memref<4xf32>) {
  func.return
}

// -----

func.func @unaligned(%A: memref<4xf32>) {
  // expected-error@below {{argument 0 of @group is not aligned to 64 bytes}}
  func.call @group(%A) : (memref<4xf32>) -> ()
  func.return
}
func.func private @group(%A: memref<4xf32>) attributes {aligned = array<i64: 0>} {
  func.return
}

// -----

func.func @declares(%A: memref<4xf32>) {
  func.call @group(%A) : (memref<4xf32>) -> ()
  func.return
}
// expected-error@below {{the attribute 'workspace' of @group is not two sizes: shared, and of each thread}}
func.func private @group(%A: memref<4xf32>) attributes {workspace = array<i64: 64>}

// -----

func.func @floats(%A: memref<4xf32>, %B: memref<2xf32>) attributes {outputs = 1 : i64} {
  // expected-error@below {{a builtin.unrealized_conversion_cast other than of a buffer to its bytes}}
  %0 = builtin.unrealized_conversion_cast %A : memref<4xf32> to memref<8xi16>
  func.return
}

// -----

func.func @value(%a: f32, %B: memref<4xi8>) attributes {outputs = 1 : i64} {
  // expected-error@below {{a builtin.unrealized_conversion_cast other than of a buffer to its bytes}}
  %0 = builtin.unrealized_conversion_cast %a : f32 to memref<4xi8>
  func.return
}

// -----

func.func @several(%a: f32, %B: memref<4xi8>) attributes {outputs = 1 : i64} {
  // expected-error@below {{a builtin.unrealized_conversion_cast other than of a buffer to its bytes}}
  %0, %1 = builtin.unrealized_conversion_cast %B, %B : memref<4xi8>, memref<4xi8> to f32, f32
  func.return
}
