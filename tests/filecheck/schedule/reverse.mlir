// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Iteration i does what iteration 11 - i did.
// CHECK-LABEL: func.func @backwards(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "D" [i = 12 at -[[I]] + 11]
// PAYLOAD: double_12 @backwards D(i)
  %back = sched.reverse %i

// -----

// A reduction may run backwards.
// CHECK-LABEL: func.func @sum(
// CHECK-NEXT: loop.for "k" [[K:%\S+]] = 12 {
// CHECK-NEXT:   loop.block "S" [reduce k = 12 at -[[K]] + 11] combine [add]
func.func @sum(%A: memref<12xf32>, %S: memref<1xf32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 12 {
    loop.block "S" [reduce k = 12 at %k] combine [add]
        (%x = %A[k] : memref<12xf32>) -> (%S[0] : memref<1xf32>) origin "S"[k] {
      loop.yield %x : f32
    }
  }
  func.return
}

// PAYLOAD: script S(k)
  %back = sched.reverse %k
