// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @set(%i: index) {
  // expected-error@below {{expected an affine set}}
  affine.if affine_map<(d0) -> (d0)>(%i) {
  }
  return
}

// -----

func.func @map(%i: index) {
  // expected-error@below {{expected an affine map}}
  %m = affine.max affine_set<(d0) : (d0 >= 0)>(%i)
  return
}

// -----

func.func @operands(%i: index) {
  // expected-error@below {{the op needs one operand for each dimension and symbol of its map}}
  %m = affine.max affine_map<(d0, d1) -> (d0, d1)>(%i)
  return
}

// -----

func.func @reduction(%x: f32) {
  // expected-error@below {{affine.parallel is read without a reduction: affine.for has one, by iter_args}}
  %m = affine.parallel (%i) = (0) to (8) reduce ("addf") -> (f32) {
    affine.yield %x : f32
  }
  return
}
