// RUN: strata-opt %s -p te-group --split-input-file --verify-diagnostics

// What calls groups computes nothing itself.
func.func @mixed(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  // expected-error@+1 {{@mixed calls groups and computes 'C' itself; put that into a group}}
  %C = te.compute "C" [i = 4] (%b = %B[i] : tensor<4xf32>) -> tensor<4xf32> {
    te.yield %b : f32
  }
  func.return %C : tensor<4xf32>
}
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  func.return %A : tensor<4xf32>
}

// -----

// What is called is a group.
func.func @plain(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{@plain calls @other, which is no group: give it the attribute 'te.group'}}
  %B = func.call @other(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}
func.func @other(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

// -----

// A group is private.
// expected-error@+1 {{the group @public is public; a group is private}}
func.func @public(%A: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  func.return %A : tensor<4xf32>
}

// -----

// A private function is a group.
func.func @calls(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @group(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  func.return %A : tensor<4xf32>
}
// expected-error@+1 {{@helper is private and no group: give it the attribute 'te.group'}}
func.func private @helper(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

// -----

// A group calls nothing, not even itself.
// expected-error@+1 {{@loops calls itself, at once or through others}}
func.func private @loops(%A: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  %B = func.call @loops(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}

// -----

// There is no recursion.
// expected-error@+1 {{@again calls itself, at once or through others}}
func.func @again(%A: tensor<4xf32>) -> tensor<4xf32> {
  %B = func.call @again(%A) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %B : tensor<4xf32>
}

// -----

// A group has a body.
// expected-error@+1 {{@declared has no body}}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32> attributes {te.group}

// -----

// A call is of the types of what it calls.
func.func @types(%A: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{result type mismatch: expected result type tensor<4xf32>, but provided tensor<5xf32>}}
  %B = func.call @group(%A) : (tensor<4xf32>) -> tensor<5xf32>
  func.return %A : tensor<4xf32>
}
func.func private @group(%A: tensor<4xf32>) -> tensor<4xf32> attributes {te.group} {
  func.return %A : tensor<4xf32>
}

// -----

// A program is of the te level.
// expected-error@unknown {{@loops: 'A' is of type memref<4xf32>, expected a tensor}}
func.func @loops(%A: memref<4xf32>) {
  func.return
}
