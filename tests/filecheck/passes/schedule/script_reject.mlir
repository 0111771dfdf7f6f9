// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// A refusal is at the op of the script; how it names the loop is the primitive's.
// PAYLOAD: double @refused D(i) s/origin "D"[i] {/{/
  // expected-error@below {{split: loop 'i': the factors 2 x 4 do not cover its extent 10}}
  %o, %n = sched.split %i by [2, 4] : !sched.loop, !sched.loop

// -----

// A script is of sched ops.
// PAYLOAD: double @foreign

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  // expected-error@below {{arith.constant: it is not an op of the sched dialect}}
  %0 = arith.constant 1 : i64
  transform.yield
}

// -----

// There is one script.
// expected-error@unknown {{apply-schedule: a script is one transform.named_sequence, and there are 0}}
// PAYLOAD: double @none

// -----

// And not two.
// expected-error@unknown {{apply-schedule: a script is one transform.named_sequence, and there are 2}}
// PAYLOAD: double @two

transform.named_sequence @one(%f: !transform.any_op {transform.readonly}) {
  transform.yield
}

transform.named_sequence @other(%f: !transform.any_op {transform.readonly}) {
  transform.yield
}

// -----

// It is applied to loops.
// expected-error@unknown {{@te is not at the loop level; lower it with te-to-loop first}}
func.func @te(%A: tensor<4xf32>) -> tensor<4xf32> {
  func.return %A : tensor<4xf32>
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  transform.yield
}

// -----

// Of several functions one is named.
// expected-error@unknown {{the module has several functions (f, g); name the one to use}}
func.func @f() {
  func.return
}
func.func @g() {
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  transform.yield
}
