// RUN: strata-opt %s --split-input-file --verify-diagnostics

func.func @f(%A: memref<10xf32>) {
  loop.for "i" %i = 3 {
    loop.for "j" %j = 4 {
      // expected-error@+1 {{axis 'x' of block 'A' is bound to %i * 4 + %j, which is 10 at %i=2, %j=2, outside its extent 10}}
      loop.block "A" [x = 10 at %i * 4 + %j] () -> (%A[x] : memref<10xf32>) {
        %0 = arith.constant 0.0 : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
// -----
func.func @f() {
  loop.for "i" %i = 3 {
    // expected-error@+1 {{loop 'i' stands inside a loop of the same name}}
    loop.for "i" %j = 4 {
    }
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{unknown loop kind 'sideways'}}
  loop.for "i" %i = 3 sideways {
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{loop 'i' has extent 0; extents are at least 1}}
  loop.for "i" %i = 0 {
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{unknown scope 'register'}}
  %T = loop.alloc "T" register : memref<4xf32>
  func.return
}
// -----
func.func @f(%A: memref<4xf32>) {
  loop.for "i" %i = 5 {
    // expected-error@+1 {{the access to 'A' is out of bounds in dimension 0: index x is 4 at x=4, the size is 4}}
    loop.block "A" [x = 5 at %i] () -> (%A[x] : memref<4xf32>) {
      %0 = arith.constant 0.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
// -----
func.func @f(%A: memref<4xf32>) {
  loop.for "i" %i = 4 {
    // expected-error@+1 {{only a block with combiners can accumulate}}
    loop.block "A" [x = 4 at %i] accumulate () -> (%A[x] : memref<4xf32>) {
      %0 = arith.constant 0.0 : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
// -----
func.func @f(%A: memref<4xf32>) {
  loop.for "i" %i = 4 {
    // expected-error@+1 {{the body must yield one value a target, of its element type}}
    loop.block "A" [x = 4 at %i] () -> (%A[x] : memref<4xf32>) {
      %0 = arith.constant 0 : i32
      loop.yield %0 : i32
    }
  }
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{'func.call' cannot stand in a loop (only loop.for, alloc, block and gather)}}
  loop.for "i" %i = 4 {
    func.call @g() : () -> ()
  }
  func.return
}
// -----
func.func @f(%A: memref<f32>) {
  // expected-error@+1 {{'arith.mulf' uses '%y' before it is defined}}
  %x = arith.mulf %y, %y : f32
  %y = arith.constant 1.0 : f32
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{the tensorized loop 'j' names no intrinsic}}
  loop.for "j" %j = 16 tensorized {
  }
  func.return
}
