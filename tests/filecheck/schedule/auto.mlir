// RUN: strata-opt %s | filecheck %s

// A template prints as it is written: the search derives the choices.
// CHECK-LABEL: transform.named_sequence @schedule(
// CHECK-NEXT:  [[D:%\S+]] = sched.get_block [[F:%\S+]] "D"
// CHECK-NEXT:  sched.auto [[D]]
// PAYLOAD: script D()
  sched.auto %d
