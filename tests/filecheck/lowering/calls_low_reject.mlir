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
