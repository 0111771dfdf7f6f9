// RUN: strata-opt %s -p raise-affine-to-loop --split-input-file --verify-diagnostics

func.func @triangular(%A: memref<8x8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    // expected-error@below {{the bound depends on %i; the number of iterations of a loop is constant}}
    affine.for %j = 0 to affine_map<(d0) -> (d0 + 1)>(%i) {
      affine.store %x, %A[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// -----

func.func @undecided(%A: memref<16xf32>, %x: f32) {
  affine.for %i = 0 to 16 step 6 {
    // expected-error@below {{the bound depends on %i}}
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to min affine_map<(d0) -> (d0 + 6, 16)>(%i) {
      affine.store %x, %A[%j] : memref<16xf32>
    }
  }
  return
}

// -----

func.func @size(%A: memref<8xf32>, %n: index, %x: f32) {
  // expected-error@below {{the bound depends on %n; the number}}
  affine.for %i = 0 to %n {
    affine.store %x, %A[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @step(%A: memref<8xf32>, %n: index, %x: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error@below {{the bound depends on %n}}
  scf.for %i = %c0 to %c8 step %n {
    memref.store %x, %A[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @backward(%A: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  // expected-error@below {{the step of 'scf.for' is 0; steps are at least 1}}
  scf.for %i = %c0 to %c8 step %c0 {
    memref.store %x, %A[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @box(%A: memref<8x8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    // expected-error@below {{the bound depends on %i}}
    affine.parallel (%j) = (%i) to (8) {
      affine.store %x, %A[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// -----

// expected-error@below {{memref<?xf32> has a dynamic or empty dimension; shapes are static and positive}}
func.func @dynamic(%A: memref<?xf32>, %x: f32) {
  affine.store %x, %A[0] : memref<?xf32>
  return
}

// -----

// expected-error@below {{has a layout or a memory space; a buffer is row-major, in one memory}}
func.func @strided(%A: memref<4xf32, strided<[2]>>, %x: f32) {
  affine.store %x, %A[0] : memref<4xf32, strided<[2]>>
  return
}

// -----

// expected-error@below {{argument 'v' is of type vector<4xf32>, expected a memref or a number}}
func.func @vector(%v: vector<4xf32>) {
  return
}

// -----

func.func @product(%A: memref<64xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %k = arith.muli %i, %j : index
      // expected-error@below {{the index of '%A' in dimension 0 is not affine in the loops}}
      memref.store %x, %A[%k] : memref<64xf32>
    }
  }
  return
}

// -----

func.func @truncating(%A: memref<8xf32>, %x: f32) {
  %c2 = arith.constant 2 : index
  affine.for %i = -4 to 8 {
    %half = arith.divsi %i, %c2 : index
    // expected-error@below {{the index of '%A' in dimension 0 is not affine in the loops}}
    memref.store %x, %A[%half] : memref<8xf32>
  }
  return
}

// -----

func.func @wraps(%A: memref<256xf32>, %x: f32) {
  affine.for %i = 0 to 256 {
    %byte = arith.index_cast %i : index to i8
    %index = arith.index_cast %byte : i8 to index
    // expected-error@below {{the index of '%A' in dimension 0 is not affine in the loops}}
    memref.store %x, %A[%index] : memref<256xf32>
  }
  return
}

// -----

func.func @gather(%A: memref<8xf32>, %I: memref<8xindex>, %B: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %index = affine.load %I[%i] : memref<8xindex>
    // expected-error@below {{the index of '%A' in dimension 0 is not affine in the loops}}
    %a = memref.load %A[%index] : memref<8xf32>
    affine.store %a, %B[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @outside(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    // expected-error@below {{the access to 'A' is out of bounds in dimension 0: index i + 1 is 8 at i=7, the size is 8}}
    affine.store %x, %A[%i + 1] : memref<8xf32>
  }
  return
}

// -----

func.func private @callee(memref<8xf32>)

func.func @calls(%A: memref<8xf32>) {
  // expected-error@below {{@callee is called: inline it first, such as by mlir-opt --inline}}
  func.call @callee(%A) : (memref<8xf32>) -> ()
  return
}

// -----

func.func @repeats(%A: memref<8xf32>, %go: i1) {
  // expected-error@below {{'scf.while' has no form in loops: their number of iterations is constant}}
  "scf.while"() ({
    "scf.condition"(%go) : (i1) -> ()
  }, {
    "scf.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @view(%A: memref<8xf32>) {
  // expected-error@below {{'memref.cast' makes a view: a buffer is accessed by its own shape}}
  %B = "memref.cast"(%A) : (memref<8xf32>) -> memref<?xf32>
  return
}

// -----

func.func @vectors(%A: memref<8xf32>, %B: memref<8xf32>) {
  // expected-error@below {{'affine.vector_load' has no form in loops}}
  %v = affine.vector_load %A[0] : memref<8xf32>, vector<8xf32>
  affine.vector_store %v, %B[0] : memref<8xf32>, vector<8xf32>
  return
}

// -----

func.func @guarded_by_data(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xf32>
    %small = arith.cmpf olt, %a, %x : f32
    // expected-error@below {{the condition is not affine in the loops, and guards a store: %small}}
    scf.if %small {
      affine.store %x, %A[%i] : memref<8xf32>
    }
  }
  return
}

// -----

func.func @carried(%A: memref<8xf32>, %x: f32) {
  // expected-error@below {{the loop carries %before, which is no reduction by add, mul, max or min}}
  %last = affine.for %i = 0 to 8 iter_args(%before = %x) -> (f32) {
    %a = affine.load %A[%i] : memref<8xf32>
    affine.yield %a : f32
  }
  affine.store %last, %A[0] : memref<8xf32>
  return
}

// -----

func.func @scan(%A: memref<8xf32>, %x: f32) {
  %sum = affine.for %i = 0 to 8 iter_args(%before = %x) -> (f32) {
    %a = affine.load %A[%i] : memref<8xf32>
    %after = arith.addf %before, %a : f32
    // expected-error@below {{%before is carried by a loop, and is no reduction}}
    affine.store %after, %A[%i] : memref<8xf32>
    affine.yield %after : f32
  }
  return
}

// -----

func.func @no_iterations(%A: memref<8xf32>, %x: f32) {
  // expected-error@below {{'affine.for' runs no iteration, and has results}}
  %sum = affine.for %i = 4 to 4 iter_args(%before = %x) -> (f32) {
    affine.yield %before : f32
  }
  affine.store %sum, %A[0] : memref<8xf32>
  return
}

// -----

func.func @reduces(%A: memref<8xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  // expected-error@below {{'scf.parallel' has results: the reduction of a parallel loop has no form}}
  %sum = scf.parallel (%i) = (%c0) to (%c8) step (%c1) init (%x) -> f32 {
    %a = memref.load %A[%i] : memref<8xf32>
    scf.reduce(%a : f32) {
    ^bb0(%l: f32, %r: f32):
      %s = arith.addf %l, %r : f32
      scf.reduce.return %s : f32
    }
  }
  memref.store %sum, %A[%c0] : memref<8xf32>
  return
}

// -----

func.func @stores_and_yields(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    %y = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%i) -> f32 {
      // expected-error@below {{'affine.store' stands in a conditional with results, which has values only}}
      affine.store %x, %A[0] : memref<8xf32>
      affine.yield %x : f32
    } else {
      affine.yield %x : f32
    }
    affine.store %y, %A[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @changed_later(%A: memref<8xf32>, %B: memref<8xf32>, %x: f32) {
  affine.for %i = 0 to 8 {
    %y = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%i) -> f32 {
      // expected-error@below {{the element of %A is used after a store that may change it}}
      %a = affine.load %A[%i - 1] : memref<8xf32>
      affine.yield %a : f32
    } else {
      affine.yield %x : f32
    }
    affine.store %x, %A[0] : memref<8xf32>
    affine.store %y, %B[%i] : memref<8xf32>
  }
  return
}

// -----

func.func @divides(%A: memref<8xi32>, %B: memref<8xi32>, %go: i1) {
  affine.for %i = 0 to 8 {
    %a = affine.load %A[%i] : memref<8xi32>
    %y = scf.if %go -> (i32) {
      // expected-error@below {{'arith.divsi' under a condition could divide by zero where the condition fails}}
      %d = arith.divsi %a, %a : i32
      scf.yield %d : i32
    } else {
      scf.yield %a : i32
    }
    affine.store %y, %B[%i] : memref<8xi32>
  }
  return
}

// -----

func.func @returns_argument(%A: memref<8xf32>) -> memref<8xf32> {
  // expected-error@below {{%A is returned, and is no allocation of its own}}
  return %A : memref<8xf32>
}

// -----

memref.global "private" @state : memref<2xf32> = dense<[1.0, 2.0]>

func.func @global(%A: memref<2xf32>) {
  // expected-error@below {{@state is no constant with elements}}
  %0 = memref.get_global @state : memref<2xf32>
  %1 = affine.load %0[0] : memref<2xf32>
  affine.store %1, %A[0] : memref<2xf32>
  return
}

// -----

// expected-error@below {{@branches has 2 blocks; its loops must be ops}}
func.func @branches(%A: memref<2xf32>) {
  cf.br ^end
^end:
  return
}
