// RUN: strata-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

func.func @same_line(%a: i32, %b: i64) -> i32 {
  %0 = arith.addi %a, %nowhere : i32 // expected-error {{%nowhere is used but not defined}}
  func.return %0 : i32
}

// -----

// The place is that of the op, not of the module.
func.func @verifier(%a: i32) -> i64 {
  %0 = "a.b"() : () -> i32
  // expected-error@+1 {{Expected arguments to have the same types as the function output types}}
  func.return %a : i32
}

// -----

func.func @below() {
  // expected-error@below {{Expected '('}}
  func.call @g[] : () -> ()
}

// -----

func.func @above() {
  func.call @g[] : () -> ()
  // expected-error-re@above {{Expected {{.}}(}}
}

// -----

func.func @dominance(%x: i32) -> i32 {
  // expected-error@+1 {{'arith.addi' uses '%b' before it is defined}}
  %a = arith.addi %b, %x : i32
  %b = arith.addi %x, %x : i32
  func.return %a : i32
}

// -----

func.func @fine() {
  func.return
}
