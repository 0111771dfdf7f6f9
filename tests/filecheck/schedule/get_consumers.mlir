// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The consumers of a block.
// CHECK-LABEL: func.func @consumers(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "D"
// PAYLOAD: producer_consumer_12 @consumers T()
  %next = sched.get_consumers %t : !sched.block
  sched.reverse_inline %next
