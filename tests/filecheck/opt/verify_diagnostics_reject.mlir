// RUN: not strata-opt %s --split-input-file --verify-diagnostics -o %t 2>&1 | filecheck %s

// CHECK: reject.mlir:[[# @LINE + 2]]:{{[0-9]+}}: error: unexpected error: {{.*}}nowhere
func.func @unannounced() -> i32 {
  func.return %nowhere : i32
}
// CHECK: reject.mlir:[[# @LINE + 1]]:1: error: expected error "never" was not produced
// expected-error {{never}}

// -----

// CHECK: reject.mlir:[[# @LINE + 5]]:{{[0-9]+}}: error: unexpected error: {{.*}}nowhere
// CHECK: reject.mlir:[[# @LINE + 1]]:1: error: expected error "nowhere" was not produced
// expected-error {{nowhere}}
func.func @wrong_line() -> i32 {
  %0 = arith.constant 1 : i32
  func.return %nowhere : i32
}

// -----

// CHECK: reject.mlir:[[# @LINE + 2]]:1: error: expected warning "it is odd" was not produced
// expected-warning@+1 {{it is odd}}
func.func @warning() {
  func.return
}

// -----

// CHECK: reject.mlir:[[# @LINE + 1]]:1: error: this comment is not of the form
// expected-error@+1 {it has one brace}
func.func @not_a_comment() {
  func.return
}
