// RUN: strata-opt %s -p raise-affine-to-loop | filecheck %s

// An update in a loop that does not index its target is a reduction; a step and a first value go into the indices.
// CHECK-LABEL: @product(%A: memref<8x16xf32>, %B: memref<16x12xf32>, %C: memref<8x12xf32>) attributes {outputs = 0 : i64}
func.func @product(%A: memref<8x16xf32>, %B: memref<16x12xf32>, %C: memref<8x12xf32>) {
  %one = arith.constant 1.0 : f32
  // CHECK-NEXT: loop.for "i" %i = 8 {
  // CHECK-NEXT: loop.for "j" %j = 6 {
  // CHECK-NEXT: loop.block "C_init" [i = 8 at %i, j = 6 at %j] () -> (%C[i, j * 2] : memref<8x12xf32>)
  // CHECK: loop.for "k" %k = 15 {
  // CHECK-NEXT: loop.block "C" [i = 8 at %i, j = 6 at %j, reduce k = 15 at %k] combine [add] accumulate
  // CHECK-NEXT: (%a = %A[i, k + 1] : memref<8x16xf32>, %b = %B[k + 1, j * 2 + 1] : memref<16x12xf32>)
  // CHECK-SAME: -> (%C[i, j * 2] : memref<8x12xf32>) origin "C"[i, j, k] {
  // CHECK-NEXT: %0 = arith.mulf %a, %b : f32
  // CHECK-NEXT: loop.yield %0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 12 step 2 {
      affine.store %one, %C[%i, %j] : memref<8x12xf32>
      affine.for %k = max affine_map<() -> (0, 1)>() to min affine_map<(d0) -> (16, d0 + 20)>(%i) {
        %a = affine.load %A[%i, %k] : memref<8x16xf32>
        %b = affine.load %B[%k, %j + 1] : memref<16x12xf32>
        %c = affine.load %C[%i, %j] : memref<8x12xf32>
        %p = arith.mulf %a, %b : f32
        %s = arith.addf %c, %p : f32
        affine.store %s, %C[%i, %j] : memref<8x12xf32>
      }
    }
  }
  return
}

// A store of the identity is the init of the reduction that accumulates onto it next, here beyond a nest of another buffer.
// CHECK-LABEL: @inits
func.func @inits(%A: memref<8x8xf32>, %S: memref<8xf32>, %T: memref<8xf32>) {
  // CHECK-NEXT: loop.for "i" %i = 8 {
  // CHECK-NEXT: loop.block "T_init"
  // CHECK: loop.for "k" %k = 8 {
  // CHECK-NEXT: loop.for "j" %j = 8 {
  // CHECK-NEXT: loop.block "S" [j = 8 at %j, reduce k = 8 at %k] where (%j - 1 >= 0) combine [add]{{$}}
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%i) {
      affine.store %zero, %S[%i] : memref<8xf32>
    }
  }
  affine.for %i = 0 to 8 {
    affine.store %zero, %T[%i] : memref<8xf32>
  }
  affine.for %k = 0 to 8 {
    affine.for %j = 0 to 8 {
      affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%j) {
        %a = affine.load %A[%k, %j] : memref<8x8xf32>
        %s = affine.load %S[%j] : memref<8xf32>
        %t = arith.addf %a, %s : f32
        affine.store %t, %S[%j] : memref<8xf32>
      }
    }
  }
  return
}

// No init: other elements, another guard, an index under which one iteration would reset the element of another, an iteration of a loop
// around that does not.
// CHECK-LABEL: @no_inits
func.func @no_inits(%A: memref<8x8xf32>, %S: memref<8xf32>, %T: memref<8xf32>, %U: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.store %zero, %S[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.store %zero, %T[%i floordiv 2] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      %a = affine.load %A[%i, %j] : memref<8x8xf32>
      // CHECK: loop.block "S" [i = 8 at %{{.*}}, reduce j = 8 at %{{.*}}] where (%{{.*}} - 1 >= 0) combine [add] accumulate
      affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%i) {
        %s = affine.load %S[%i] : memref<8xf32>
        %t = arith.addf %a, %s : f32
        affine.store %t, %S[%i] : memref<8xf32>
      }
    }
  }
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 8 {
      // CHECK: loop.block "T" [i = 8 at %{{.*}}, reduce j = 8 at %{{.*}}] combine [add] accumulate
      %a = affine.load %A[%i, %j] : memref<8x8xf32>
      %s = affine.load %T[%i floordiv 2] : memref<8xf32>
      %t = arith.addf %a, %s : f32
      affine.store %t, %T[%i floordiv 2] : memref<8xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.store %zero, %U[%i + 4] : memref<8xf32>
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 8 {
      // CHECK: loop.block "U" [i = 4 at %{{.*}}, reduce j = 8 at %{{.*}}] combine [add] accumulate
      %a = affine.load %A[%i, %j] : memref<8x8xf32>
      %s = affine.load %U[%i] : memref<8xf32>
      %x = arith.addf %a, %s : f32
      affine.store %x, %U[%i] : memref<8xf32>
    }
  }
  affine.for %t = 0 to 2 {
    affine.store %zero, %U[0] : memref<8xf32>
    affine.for %j = 0 to 8 {
      // CHECK: loop.block "U.1" [reduce t = 2 at %t, reduce j = 8 at %{{.*}}] combine [add] accumulate
      %a = affine.load %A[%t, %j] : memref<8x8xf32>
      %s = affine.load %U[0] : memref<8xf32>
      %x = arith.addf %a, %s : f32
      affine.store %x, %U[0] : memref<8xf32>
    }
  }
  return
}

// The bounds of tiles depend on outer loops, their number of iterations does not.
// CHECK-LABEL: @tiles
func.func @tiles(%A: memref<64xf32>, %x: f32) {
  // CHECK: loop.for "i" %i = 4 {
  // CHECK-NEXT: loop.for "j" %j = 16 {
  // CHECK-NEXT: loop.block "A" [i = 4 at %i, j = 16 at %j]
  // CHECK-NEXT: (%x_1 = %x[] : memref<f32>) -> (%A[i * 16 + j] : memref<64xf32>)
  affine.for %arg0 = 0 to 64 step 16 {
    affine.for %arg1 = affine_map<(d0) -> (d0)>(%arg0) to min affine_map<(d0) -> (d0 + 16, 64)>(%arg0) {
      affine.store %x, %A[%arg1] : memref<64xf32>
    }
  }
  return
}

// Conditions become guards; the negation of a conjunction has an alternative for each condition.
// CHECK-LABEL: @guards
func.func @guards(%A: memref<8x8xf32>, %x: f32, %y: f32) {
  // CHECK: loop.block "A" [i = 8 at %i, j = 8 at %j] where (%i - %j >= 0, %j - 1 >= 0)
  // CHECK-NEXT: (%x_1 = %x[] : memref<f32>)
  // CHECK: loop.block "A.1" [i = 8 at %i, j = 8 at %j] where (-%i + %j - 1 >= 0)
  // CHECK-NEXT: (%y_1 = %y[] : memref<f32>)
  // CHECK: loop.block "A.2" [i = 8 at %i, j = 8 at %j] where (%i - %j >= 0, -%j >= 0)
  // CHECK-NEXT: (%y_1 = %y[] : memref<f32>)
  affine.parallel (%i, %j) = (0, 0) to (8, 8) {
    affine.if affine_set<(d0, d1) : (d0 - d1 >= 0, d1 - 1 >= 0)>(%i, %j) {
      affine.store %x, %A[%i, %j] : memref<8x8xf32>
    } else {
      affine.store %y, %A[%i, %j] : memref<8x8xf32>
    }
  }
  return
}

// Comparisons of scf, and index arithmetic: a division that truncates is a floor where nothing is negative.
// CHECK-LABEL: @arithmetic
func.func @arithmetic(%A: memref<16xf32>, %x: f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c16 = arith.constant 16 : index
  // CHECK: loop.for "i" %i = 6 {
  // CHECK-NEXT: loop.block "A" [i = 6 at %i] where (%i - 2 >= 0)
  // CHECK-NEXT: (%x_1 = %x[] : memref<f32>) -> (%A[i + i floordiv 2 + i mod 5] : memref<16xf32>)
  // CHECK: loop.block "A.1" [i = 6 at %i] where (%i - 2 >= 0, %i - 5 == 0)
  scf.for %i = %c0 to %c16 step %c3 {
    %third = arith.divsi %i, %c3 : index
    %half = arith.divsi %third, %c2 : index
    %rest = arith.remsi %third, %c5 : index
    %sum = arith.addi %third, %half : index
    %plain = arith.addi %sum, %rest : index
    %narrow = arith.index_cast %plain : index to i32
    %wide = arith.extsi %narrow : i32 to i64
    %index = arith.index_cast %wide : i64 to index
    %two = arith.cmpi uge, %third, %c2 : index
    scf.if %two {
      memref.store %x, %A[%index] : memref<16xf32>
    }
    %last = arith.cmpi eq, %third, %c5 : index
    %both = arith.andi %two, %last : i1
    scf.if %both {
      memref.store %x, %A[%c0] : memref<16xf32>
    }
  }
  return
}

// A loop-carried scalar is reduced in the element to which it is stored, also through a nest, and from that element's value.
// CHECK-LABEL: @carried
func.func @carried(%A: memref<4x8x8xf32>, %M: memref<4xf32>) {
  // CHECK: loop.for "i" %i = 4 {
  // CHECK-NEXT: loop.for "j" %j = 8 {
  // CHECK-NEXT: loop.for "k" %k = 8 {
  // CHECK-NEXT: loop.block "M" [i = 4 at %i, reduce j = 8 at %j, reduce k = 8 at %k] combine [max] accumulate
  // CHECK-NEXT: (%a = %A[i, j, k] : memref<4x8x8xf32>) -> (%M[i] : memref<4xf32>)
  affine.for %i = 0 to 4 {
    %first = affine.load %M[%i] : memref<4xf32>
    %all = affine.for %j = 0 to 8 iter_args(%outer = %first) -> (f32) {
      %row = affine.for %k = 0 to 8 iter_args(%inner = %outer) -> (f32) {
        %a = affine.load %A[%i, %j, %k] : memref<4x8x8xf32>
        %m = arith.maximumf %a, %inner : f32
        affine.yield %m : f32
      }
      affine.yield %row : f32
    }
    affine.store %all, %M[%i] : memref<4xf32>
  }
  return
}

// Otherwise in a buffer of rank 0, which each iteration of the loops around it has; a difference adds the negative.
// CHECK-LABEL: @temporary
func.func @temporary(%A: memref<4x8xf32>, %B: memref<4x8xf32>, %M: memref<4xf32>, %one: f32) {
  // CHECK: loop.for "i" %i = 4 {
  // CHECK-NEXT: %sum = loop.alloc "sum" : memref<f32>
  // CHECK-NEXT: loop.block "sum" [i = 4 at %i]
  // CHECK-NEXT: (%one_1 = %one[] : memref<f32>) -> (%sum[] : memref<f32>)
  // CHECK: loop.for "j" %j = 8 {
  // CHECK-NEXT: loop.block "sum.1" [i = 4 at %i, reduce j = 8 at %j] combine [add] accumulate
  // CHECK: loop.block "sum.2" [i = 4 at %i, reduce j = 8 at %j] combine [add] accumulate
  // CHECK-NEXT: (%b = %B[i, j] : memref<4x8xf32>) -> (%sum[] : memref<f32>)
  // CHECK-NEXT: %0 = arith.negf %b : f32
  // CHECK: loop.block "M" [i = 4 at %i]
  // CHECK-NEXT: (%sum_1 = %sum[] : memref<f32>) -> (%M[i] : memref<4xf32>)
  affine.for %i = 0 to 4 {
    %total = affine.for %j = 0 to 8 iter_args(%sum = %one) -> (f32) {
      %a = affine.load %A[%i, %j] : memref<4x8xf32>
      %b = affine.load %B[%i, %j] : memref<4x8xf32>
      %s = arith.addf %sum, %a : f32
      %t = arith.subf %s, %b : f32
      affine.yield %t : f32
    }
    %r = math.sqrt %total : f32
    affine.store %r, %M[%i] : memref<4xf32>
  }
  return
}

// No reduction: what is added reads the buffer, so that the order of the updates counts.
// CHECK-LABEL: @paths
func.func @paths(%P: memref<8x8xf32>) {
  // CHECK: loop.block "P" [k = 8 at %k, i = 8 at %i, j = 8 at %j]
  // CHECK-NEXT: (%p = %P[i, k] : memref<8x8xf32>, %p_1 = %P[k, j] : memref<8x8xf32>, %p_2 = %P[i, j] : memref<8x8xf32>)
  affine.for %k = 0 to 8 {
    affine.for %i = 0 to 8 {
      affine.for %j = 0 to 8 {
        %a = affine.load %P[%i, %k] : memref<8x8xf32>
        %b = affine.load %P[%k, %j] : memref<8x8xf32>
        %c = affine.load %P[%i, %j] : memref<8x8xf32>
        %s = arith.addf %a, %b : f32
        %m = arith.minimumf %s, %c : f32
        affine.store %m, %P[%i, %j] : memref<8x8xf32>
      }
    }
  }
  return
}

// CHECK-LABEL: @compound
func.func @compound(%A: memref<8xf32>, %S: memref<f32>) {
  // CHECK: loop.block "S" [i = 8 at %i]
  // CHECK-NEXT: (%s = %S[] : memref<f32>, %a = %A[i] : memref<8xf32>) -> (%S[] : memref<f32>)
  affine.for %i = 0 to 8 {
    %s = affine.load %S[] : memref<f32>
    %a = affine.load %A[%i] : memref<8xf32>
    %p = arith.mulf %s, %a : f32
    %t = arith.addf %s, %p : f32
    affine.store %t, %S[] : memref<f32>
  }
  return
}

// A value that is used after a store to its element is copied first.
// CHECK-LABEL: @swap
func.func @swap(%A: memref<8xf32>) {
  // CHECK: loop.for "i" %i = 4 {
  // CHECK-NEXT: %A_read = loop.alloc "A_read" : memref<f32>
  // CHECK-NEXT: loop.block "A_read" [i = 4 at %i]
  // CHECK-NEXT: (%a = %A[i] : memref<8xf32>) -> (%A_read[] : memref<f32>)
  // CHECK: loop.block "A" [i = 4 at %i]
  // CHECK-NEXT: (%a = %A[-i + 7] : memref<8xf32>) -> (%A[i] : memref<8xf32>)
  // CHECK: loop.block "A.1" [i = 4 at %i]
  // CHECK-NEXT: (%a_read = %A_read[] : memref<f32>) -> (%A[-i + 7] : memref<8xf32>)
  affine.for %i = 0 to 4 {
    %a = affine.load %A[%i] : memref<8xf32>
    %b = affine.load %A[7 - %i] : memref<8xf32>
    affine.store %b, %A[%i] : memref<8xf32>
    affine.store %a, %A[7 - %i] : memref<8xf32>
  }
  return
}

// A store in a later iteration changes it, too.
// CHECK-LABEL: @hoisted
func.func @hoisted(%A: memref<1xf32>, %B: memref<8xf32>, %x: f32) {
  // CHECK-NEXT: %A_read = loop.alloc "A_read" : memref<f32>
  // CHECK: loop.block "B" [i = 8 at %i]
  // CHECK-NEXT: (%a_read = %A_read[] : memref<f32>) -> (%B[i] : memref<8xf32>)
  %a = affine.load %A[0] : memref<1xf32>
  affine.for %i = 0 to 8 {
    affine.store %a, %B[%i] : memref<8xf32>
    affine.store %x, %A[0] : memref<1xf32>
  }
  return
}

// Each alternative of a condition copies its own value.
// CHECK-LABEL: @alternatives
func.func @alternatives(%A: memref<8xf32>, %B: memref<8xf32>, %x: f32) {
  // CHECK: loop.block "A_read" [i = 8 at %i] where (-%i + 3 >= 0)
  // CHECK-NEXT: (%a = %A[i] : memref<8xf32>) -> (%A_read[] : memref<f32>)
  // CHECK: loop.block "B" [i = 8 at %i] where (-%i + 3 >= 0)
  // CHECK-NEXT: (%a_read = %A_read[] : memref<f32>)
  // CHECK: loop.block "A_read.1" [i = 8 at %i] where (%i - 5 >= 0)
  // CHECK-NEXT: (%a = %A[i] : memref<8xf32>) -> (%A_read.1[] : memref<f32>)
  // CHECK: loop.block "B.1" [i = 8 at %i] where (%i - 5 >= 0)
  // CHECK-NEXT: (%a_read.1 = %A_read.1[] : memref<f32>)
  affine.for %i = 0 to 8 {
    affine.if affine_set<(d0) : (d0 - 4 == 0)>(%i) {
    } else {
      %a = affine.load %A[%i] : memref<8xf32>
      affine.store %x, %A[%i] : memref<8xf32>
      affine.store %a, %B[%i] : memref<8xf32>
    }
  }
  return
}

// A buffer that begins after the loop cannot hold the scalar that the loop carries.
// CHECK-LABEL: @later
func.func @later(%A: memref<8xf32>, %B: memref<8xf32>, %x: f32) {
  // CHECK: %s = loop.alloc "s"
  // CHECK: %T = loop.alloc "T"
  // CHECK: %s.1 = loop.alloc "s.1"
  // CHECK: %T.1 = loop.alloc "T.1"
  affine.for %i = 0 to 8 {
    affine.store %x, %B[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    affine.if affine_set<(d0) : (d0 - 4 == 0)>(%i) {
    } else {
      %sum = affine.for %j = 0 to 8 iter_args(%s = %x) -> f32 {
        %k = affine.apply affine_map<(d0) -> (7 - d0)>(%j)
        %a = affine.load %A[%k] : memref<8xf32>
        %t = arith.addf %s, %a : f32
        affine.yield %t : f32
      }
      %T = memref.alloca() : memref<f32>
      affine.store %sum, %T[] : memref<f32>
      %t = affine.load %T[] : memref<f32>
      affine.store %t, %B[%i] : memref<8xf32>
    }
  }
  return
}

// A conditional with results is a select; a read is conditional where the condition is affine.
// CHECK-LABEL: @selects
func.func @selects(%A: memref<8xf32>, %B: memref<8xf32>) {
  // CHECK: (%a = %A[i] : memref<8xf32>, %a_1 = %A[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>)
  // CHECK: %[[NEGATIVE:.*]] = arith.cmpf olt, %a, %{{.*}} : f32
  // CHECK: %[[SHIFTED:.*]] = arith.select %{{.*}}, %a_1, %{{.*}} : f32
  // CHECK: arith.select %[[NEGATIVE]], %{{.*}}, %[[SHIFTED]] : f32
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %shifted = affine.if affine_set<(d0) : (d0 - 1 >= 0)>(%i) -> f32 {
      %a = affine.load %A[%i - 1] : memref<8xf32>
      affine.yield %a : f32
    } else {
      affine.yield %zero : f32
    }
    %b = affine.load %A[%i] : memref<8xf32>
    %negative = arith.cmpf olt, %b, %zero : f32
    %y = scf.if %negative -> (f32) {
      %n = arith.negf %b : f32
      scf.yield %n : f32
    } else {
      scf.yield %shifted : f32
    }
    affine.store %y, %B[%i] : memref<8xf32>
  }
  return
}

// CHECK-LABEL: @otherwise
func.func @otherwise(%A: memref<8xf32>, %B: memref<8xf32>, %x: f32) {
  // CHECK: (%a = %A[i - 1] where (i - 1 >= 0) else 0.0 : memref<8xf32>, %x_1 = %x[] where (i == 0) else 0.0 : memref<f32>)
  affine.for %i = 0 to 8 {
    %y = affine.if affine_set<(d0) : (d0 == 0)>(%i) -> f32 {
      affine.yield %x : f32
    } else {
      %a = affine.load %A[%i - 1] : memref<8xf32>
      affine.yield %a : f32
    }
    affine.store %y, %B[%i] : memref<8xf32>
  }
  return
}

// Returned allocations and numbers become trailing arguments, constants are read where they are.
memref.global "private" constant @weights : memref<3xf32> = dense<[1.0, 2.0, 4.0]>

// CHECK-LABEL: @results(%A: memref<3xf32>, %T: memref<3xf32>, %sum: memref<f32>) attributes {outputs = 2 : i64}
func.func @results(%A: memref<3xf32>) -> (memref<3xf32>, f32) {
  // CHECK-NEXT: %weights = loop.constant "weights" dense<[1.0, 2.0, 4.0]> : tensor<3xf32>
  // CHECK-NEXT: %U = loop.alloc "U" : memref<3xf32>
  // CHECK: loop.block "T" [i = 3 at %i]
  // CHECK-NEXT: (%a = %A[i] : memref<3xf32>, %weights_1 = %weights[i] : memref<3xf32>)
  // CHECK: loop.block "U" [i = 3 at %{{.*}}]
  // CHECK-NEXT: (%t = %T[i] : memref<3xf32>) -> (%U[i] : memref<3xf32>)
  // CHECK: loop.block "sum" []
  // CHECK-NEXT: (%s_1 = %s[] : memref<f32>) -> (%sum[] : memref<f32>)
  %W = memref.get_global @weights : memref<3xf32>
  %T = memref.alloc() {alignment = 64 : i64} : memref<3xf32>
  %U = memref.alloca() : memref<3xf32>
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 3 {
    %a = affine.load %A[%i] : memref<3xf32>
    %w = affine.load %W[%i] : memref<3xf32>
    %p = arith.mulf %a, %w : f32
    affine.store %p, %T[%i] : memref<3xf32>
  }
  memref.copy %T, %U : memref<3xf32> to memref<3xf32>
  %sum = affine.for %i = 0 to 3 iter_args(%s = %zero) -> (f32) {
    %u = affine.load %U[%i] : memref<3xf32>
    %v = arith.addf %s, %u : f32
    affine.yield %v : f32
  }
  return %T, %sum : memref<3xf32>, f32
}

// A loop without iterations leaves nothing.
// CHECK-LABEL: @nothing
// CHECK-NEXT: func.return
func.func @nothing(%A: memref<8xf32>, %x: f32) {
  affine.for %i = 8 to 8 {
    affine.store %x, %A[%i] : memref<8xf32>
  }
  return
}

// Names and attributes as Polygeist prints them.
// CHECK-LABEL: @kernel(%arg0: memref<i32>, %arg1: memref<f64>, %arg2: memref<4xf64>)
// CHECK-SAME: attributes {llvm.linkage = #llvm.linkage<"external">, outputs = 0 : i64}
func.func @kernel(%arg0: i32, %arg1: f64, %arg2: memref<4xf64>) attributes {llvm.linkage = #llvm.linkage<external>} {
  // CHECK: loop.block "arg2" [i = 4 at %i]
  affine.for %arg3 = 0 to 4 {
    %0 = affine.load %arg2[%arg3] : memref<4xf64>
    %1 = arith.mulf %0, %arg1 : f64
    affine.store %1, %arg2[%arg3] : memref<4xf64>
  }
  return
}
