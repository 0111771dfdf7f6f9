// RUN: strata-opt %s --split-input-file | filecheck %s
// RUN: strata-opt %s --split-input-file --print-op-generic | filecheck %s --check-prefix=GENERIC
// RUN: strata-opt %s --split-input-file | strata-opt - --split-input-file | filecheck %s

// CHECK:      builtin.module {
// CHECK-NEXT:   func.func @f() {
// CHECK:      {{^}}// -----{{$}}
// CHECK-NEXT: builtin.module {
// CHECK-NEXT:   func.func @f(%x: i32) {

// GENERIC:    "func.func"() <{sym_name = "f", function_type = () -> ()}> ({
func.func @f() {
  func.return
}

// -----

// A line that goes on is no separator: // ----- here
func.func @f(%x: i32) {
  func.return
}
