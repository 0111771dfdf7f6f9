// RUN: strata-opt %s -p convert-linalg-to-te --split-input-file --verify-diagnostics

// expected-error@below {{convert-linalg-to-te: argument 1 of @scalar is of type index: te functions take tensors and numbers}}
func.func @scalar(%A: tensor<4xf32>, %a: index) -> tensor<4xf32> {
  %B = math.exp %A : tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

// expected-error@below {{convert-linalg-to-te: 'func.func' has a value that te lacks: tensor<?xf32> has a dynamic or empty dimension; shapes are static and positive}}
func.func @dynamic(%A: tensor<?xf32>) -> tensor<?xf32> {
  %B = math.exp %A : tensor<?xf32>
  return %B : tensor<?xf32>
}

// -----

// expected-error@below {{convert-linalg-to-te: 'func.func' is on buffers (memref<4xf32>): convert programs on tensors, before bufferisation}}
func.func @buffers(%A: memref<4xf32>, %B: memref<4xf32>) {
  linalg.exp ins(%A : memref<4xf32>) outs(%B : memref<4xf32>)
  return
}

// -----

func.func @undefined(%A: tensor<4x8xf32>, %B: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %e = tensor.empty() : tensor<4x2xf32>
  // expected-error@below {{'linalg.matmul' reads the elements of a tensor.empty, which are undefined}}
  %C = linalg.matmul ins(%A, %B : tensor<4x8xf32>, tensor<8x2xf32>) outs(%e : tensor<4x2xf32>) -> tensor<4x2xf32>
  return %C : tensor<4x2xf32>
}

// -----

func.func @empty_result() -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  // expected-error@below {{'func.return' reads the elements of a tensor.empty, which are undefined}}
  return %e : tensor<4xf32>
}

// -----

func.func @divides(%A: tensor<4x8xf32>, %I: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'linalg.reduce' combines its output by 'arith.divf', which is no combiner of te}}
  %B = linalg.reduce { arith.divf } ins(%A : tensor<4x8xf32>) outs(%I : tensor<4xf32>) dimensions = [1]
  return %B : tensor<4xf32>
}

// -----

func.func @last(%A: tensor<4x8xf32>, %I: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'linalg.reduce' has a body that does not combine its output with a value, once: te reductions do}}
  %B = linalg.reduce ins(%A : tensor<4x8xf32>) outs(%I : tensor<4xf32>) dimensions = [1] (%a: f32, %out: f32) {
    linalg.yield %a : f32
  }
  return %B : tensor<4xf32>
}

// -----

func.func @two_outputs(%A: tensor<4x8xf32>, %I: tensor<4xf32>, %J: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@below {{'linalg.reduce' has a body that combines its output with a value that depends on an output}}
  %B:2 = linalg.reduce ins(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) outs(%I, %J : tensor<4xf32>, tensor<4xf32>)
      dimensions = [1] (%a: f32, %b: f32, %x: f32, %y: f32) {
    %s = arith.addf %x, %a : f32
    %t = arith.addf %y, %s : f32
    linalg.yield %s, %t : f32, f32
  }
  return %B#0, %B#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @diagonal(%A: tensor<4xf32>, %I: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error@below {{'linalg.generic' writes its output at (d0) -> (d0, d0): te writes each element once, at its index}}
  %B = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0, d0)>], iterator_types = ["parallel"]}
      ins(%A : tensor<4xf32>) outs(%I : tensor<4x4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4x4xf32>
  return %B : tensor<4x4xf32>
}

// -----

func.func @repeated(%A: tensor<4x8xf32>, %I: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'linalg.generic' writes each element 8 times: d1 is parallel, and not in the output's map}}
  %B = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", "parallel"]}
      ins(%A : tensor<4x8xf32>) outs(%I : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

func.func @in_body(%A: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %B = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%A : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %out: f32):
    // expected-error@below {{'vector.broadcast' is no op on scalars of arith or math, so no te body has it}}
    %v = vector.broadcast %a : f32 to vector<1xf32>
    %b = vector.extract %v[0] : f32 from vector<1xf32>
    linalg.yield %b : f32
  } -> tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

func.func private @declared(%A: tensor<4xf32>) -> tensor<4xf32>
func.func @calls_declared(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = math.exp %A : tensor<4xf32>
  // expected-error@below {{'func.call' calls @declared, whose body is not one block}}
  %C = func.call @declared(%B) : (tensor<4xf32>) -> tensor<4xf32>
  return %C : tensor<4xf32>
}

// -----

func.func @loops(%A: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant 1 : index
  // expected-error@below {{'scf.for' has no te form}}
  %B = scf.for %i = %c to %c step %c iter_args(%x = %A) -> (tensor<4xf32>) {
    scf.yield %x : tensor<4xf32>
  }
  return %B : tensor<4xf32>
}

// -----

func.func @moving(%A: tensor<4x8xf32>, %I: tensor<i32>) -> tensor<1x8xf32> {
  %i = tensor.extract %I[] : tensor<i32>
  %j = arith.index_cast %i : i32 to index
  // expected-error@below {{'tensor.extract_slice' has a size, an offset or a stride that is known at run time only}}
  %B = tensor.extract_slice %A[%j, 0] [1, 8] [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
  return %B : tensor<1x8xf32>
}

// -----

func.func @unranked(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'tensor.cast' converts a tensor of shape (4,) to tensor<*xf32>, which has no rank}}
  %B = tensor.cast %A : tensor<4xf32> to tensor<*xf32>
  return %A : tensor<4xf32>
}

// -----

func.func @wrong_cast(%A: tensor<4xf32>) -> tensor<5xf32> {
  %B = tensor.cast %A : tensor<4xf32> to tensor<?xf32>
  // expected-error@below {{'tensor.cast' converts a tensor of shape (4,) to tensor<5xf32>}}
  %C = tensor.cast %B : tensor<?xf32> to tensor<5xf32>
  return %C : tensor<5xf32>
}

// -----

func.func @hidden(%A: tensor<4xf32>, %B: tensor<5xf32>) -> tensor<4xf32> {
  %C = tensor.cast %B : tensor<5xf32> to tensor<?xf32>
  // expected-error@below {{'linalg.add' has the extents 4 and 5 for d0}}
  %D = linalg.add ins(%A, %C : tensor<4xf32>, tensor<?xf32>) outs(%A : tensor<4xf32>) -> tensor<4xf32>
  return %D : tensor<4xf32>
}

// -----

func.func @outside(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'tensor.extract_slice' has no te form: in compute 'T': the read of 'A' is out of bounds in dimension 0}}
  %B = tensor.extract_slice %A[2] [4] [1] : tensor<4xf32> to tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

func.func @wrong_sizes(%A: tensor<4x8xf32>) -> tensor<3xf32> {
  // expected-error@below {{'tensor.extract_slice' has sizes [1, 4] for a tensor of shape (3,)}}
  %B = tensor.extract_slice %A[0, 0] [1, 4] [1, 1] : tensor<4x8xf32> to tensor<3xf32>
  return %B : tensor<3xf32>
}

// -----

func.func @pads(%A: tensor<4xf32>) -> tensor<6xf32> {
  %B = tensor.pad %A low[1] high[1] {
  ^bb0(%i: index):
    %j = arith.index_cast %i : index to i32
    %f = arith.sitofp %j : i32 to f32
    tensor.yield %f : f32
  } : tensor<4xf32> to tensor<6xf32>
  // expected-error@-6 {{'tensor.pad' pads with a value that its region computes}}
  return %B : tensor<6xf32>
}

// -----

func.func @element(%A: tensor<4xf32>, %I: tensor<i32>) -> tensor<f32> {
  %i = tensor.extract %I[] : tensor<i32>
  %j = arith.index_cast %i : i32 to index
  // expected-error@below {{'tensor.extract' is at an index that is no constant: use tensor.extract in a linalg.generic}}
  %a = tensor.extract %A[%j] : tensor<4xf32>
  %B = tensor.splat %a : tensor<f32>
  return %B : tensor<f32>
}

// -----

func.func @indices(%A: tensor<4xindex>) -> tensor<2x2xindex> {
  // expected-error@below {{'tensor.expand_shape' is on elements of type index, which is no dtype}}
  %B = tensor.expand_shape %A [[0, 1]] output_shape [2, 2] : tensor<4xindex> into tensor<2x2xindex>
  return %B : tensor<2x2xindex>
}

// -----

func.func @blocks(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@-1 {{convert-linalg-to-te: @blocks has 2 blocks, expected one}}
  %B = math.exp %A : tensor<4xf32>
  cf.br ^bb1
^bb1:
  return %B : tensor<4xf32>
}

// -----

func.func @joint(%A: tensor<4x8xf32>, %I: tensor<4xf32>, %J: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error@below {{'linalg.reduce' combines its outputs jointly, from values that are no constants}}
  %B:2 = linalg.reduce ins(%A, %A : tensor<4x8xf32>, tensor<4x8xf32>) outs(%I, %J : tensor<4xf32>, tensor<4xf32>)
      dimensions = [1] (%a: f32, %b: f32, %x: f32, %y: f32) {
    %s = arith.addf %x, %a : f32
    %p = arith.mulf %y, %b : f32
    %t = arith.addf %s, %p : f32
    linalg.yield %s, %t : f32, f32
  }
  return %B#0, %B#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @windows(%A: tensor<4xf32>, %I: tensor<f32>) -> tensor<f32> {
  // expected-error@below {{'linalg.generic' has window iterators, which are no loops of te}}
  %B = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> ()>], iterator_types = ["window"]}
      ins(%A : tensor<4xf32>) outs(%I : tensor<f32>) {
  ^bb0(%a: f32, %out: f32):
    linalg.yield %a : f32
  } -> tensor<f32>
  return %B : tensor<f32>
}

// -----

func.func @beyond(%A: tensor<4xf32>) -> tensor<4xf32> {
  %i = arith.constant 1 : index
  // expected-error@below {{'tensor.dim' reads the extent of a dimension that is no constant below the rank}}
  %d = tensor.dim %A, %i : tensor<4xf32>
  %B = math.exp %A : tensor<4xf32>
  return %B : tensor<4xf32>
}

// -----

func.func @narrow(%A: tensor<4xi4>) -> tensor<4xi4> {
  // expected-error@below {{'arith.constant' has no te form: a constant has elements of type i4, which is no dtype}}
  %c = arith.constant dense<1> : tensor<4xi4>
  %B = arith.addi %A, %c : tensor<4xi4>
  return %B : tensor<4xi4>
}

// -----

func.func @many(%A: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error@below {{'arith.mulsi_extended' has 2 results on tensors}}
  %B, %C = "arith.mulsi_extended"(%A, %A) : (tensor<4xi32>, tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>)
  return %B : tensor<4xi32>
}

// -----

func.func @unsigned(%A: tensor<4xui8>, %B: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@below {{'arith.sitofp' is on elements of type ui8: MLIR computes with signless integers only}}
  %C = linalg.copy ins(%A : tensor<4xui8>) outs(%B : tensor<4xf32>) -> tensor<4xf32>
  return %C : tensor<4xf32>
}

// -----

func.func @packed_bits() -> tensor<9xi1> {
  // expected-error@below {{9 elements of type i1 are 2 bytes, not 1}}
  %c = arith.constant dense<"0x05"> : tensor<9xi1>
  %d = arith.andi %c, %c : tensor<9xi1>
  return %d : tensor<9xi1>
}

// -----

func.func @index_maximum(%A: tensor<4xindex>) -> tensor<index> {
  %c = arith.constant 0 : index
  %e = tensor.empty() : tensor<index>
  %i = linalg.fill ins(%c : index) outs(%e : tensor<index>) -> tensor<index>
  // expected-error@below {{the combiner 'max' has no identity at type index}}
  %B = linalg.reduce { arith.maxsi } ins(%A : tensor<4xindex>) outs(%i : tensor<index>) dimensions = [0]
  return %B : tensor<index>
}
