// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The producers of a block.
// CHECK-LABEL: func.func @producers(
// CHECK-NEXT: loop.for "j" [[J:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "D"
// PAYLOAD: producer_consumer_12 @producers D()
  %back = sched.get_producers %d : !sched.block
  sched.inline %back
