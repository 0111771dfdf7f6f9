// RUN: strata-opt %s --split-input-file --verify-diagnostics

// expected-error@+2 {{there is no resource 'W' in the text's dialect_resources}}
// PAYLOAD: te_resource s/4xi8/4xf32/g
// -----
// expected-error@+2 {{the resource 'W' has 3 bytes, but tensor<4xf32> has 16}}
// PAYLOAD: te_resource s/4xi8/4xf32/g
{-# dialect_resources: { builtin: { W: "0x04000000000102" } } #-}
// -----
// expected-error@+2 {{the resource 'W' is not 0x and pairs of hexadecimal digits}}
// PAYLOAD: te_resource
{-# dialect_resources: { builtin: { W: "0x0400000000010G00" } } #-}
// -----
// expected-error@+2 {{the resource 'W' is not 0x and pairs of hexadecimal digits}}
// PAYLOAD: te_resource
{-# dialect_resources: { builtin: { W: "0400000000010000" } } #-}
// -----
// expected-error@+2 {{the resource 'W' is too short: four bytes of alignment come first}}
// PAYLOAD: te_resource s/4xi8/1xi8/g
{-# dialect_resources: { builtin: { W: "0x01" } } #-}
// -----
// expected-error@+2 {{the resource 'W' has truth values other than 00 and 01}}
// PAYLOAD: te_resource s/4xi8/2xi1/g
{-# dialect_resources: { builtin: { W: "0x010000000102" } } #-}
// -----
// PAYLOAD: te_resource s/4xi8/1xi8/g
// expected-error@+1 {{the resource 'W' is given twice}}
{-# dialect_resources: { builtin: { W: "0x0100000001", W: "0x0100000002" } } #-}
// -----
func.func @f() -> tensor<3xf32> {
  // expected-error@+2 {{Shape mismatch in dense literal. Expected [3] shape from the type, but got [2] shape.}}
  %W = te.constant dense<[1.0, 2.0]> : tensor<3xf32>
  func.return %W : tensor<3xf32>
}
// -----
func.func @f() {
  // expected-error@+1 {{a constant has elements of type i7, which is no dtype}}
  %W = te.constant dense<[1, 2]> : tensor<2xi7>
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{a constant is a tensor, not vector<2xi8>}}
  %W = te.constant dense<[1, 2]> : vector<2xi8>
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{expected dense<...> or dense_resource<...>, got 1.0}}
  %W = te.constant 1.0 : f32
  func.return
}
// -----
func.func @f() {
  // expected-error@+1 {{the result of a constant of type tensor<2xi8> is no tensor<3xi8>}}
  %W = "te.constant"() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<3xi8>
  func.return
}
