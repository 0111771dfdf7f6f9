// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The attribute is printed with the loop.
// CHECK-LABEL: func.func @number(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: } attributes {hint = 4 : i64}
// PAYLOAD: double @number D(i)
  sched.annotate %i "hint" = 4 : i64

// -----

// A second one under the same name replaces the first.
// CHECK-LABEL: func.func @word(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: } attributes {hint = "hot"}
// PAYLOAD: double @word D(i)
  sched.annotate %i "hint" = 4 : i64
  sched.annotate %i "hint" = "hot"
