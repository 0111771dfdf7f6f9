// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// Each read becomes the body at its index.
// CHECK-LABEL: func.func @stencil(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>, %a_1 = %A[i + 1] : memref<10xf32>, %a_2 = %A[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
// PAYLOAD: stencil @stencil T()
  sched.inline %t

// -----

// A consumer that is inlined itself brings its reads along.
// CHECK-LABEL: func.func @chain(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// PAYLOAD: two_producers @chain T() U() s/(%x = %A[i] : memref<10xf32>) -> (%U/(%x = %T[i] : memref<10xf32>) -> (%U/ \
//   s/(%x = %T[i] : memref<10xf32>, %y = %U[i] : memref<10xf32>)/(%x = %U[i] : memref<10xf32>)/ s/mulf %x, %y/addf %x, %x/
  sched.inline %t
  sched.inline %u

// -----

// A read that is made under a condition only stays so.
// CHECK-LABEL: func.func @condition(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] where (-i + 7 >= 0) else 0.0 : memref<8xf32>) -> (%D[i] : memref<10xf32>)
// PAYLOAD: double_or_zero @condition T()
  sched.inline %t

// -----

// Each target dissolves where it is read.
// CHECK-LABEL: func.func @two(
// CHECK-NEXT: loop.for "i" %i = 8 {
// CHECK-NEXT: loop.block "D" [i = 8 at %i]
// CHECK-NEXT: (%a = %A[i] : memref<10xf32>, {{.*}} = %A[i + 2] : memref<10xf32>) -> (%D[i] : memref<8xf32>)
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.mulf
// CHECK-NEXT: arith.addf
// PAYLOAD: two_targets_8 @two T() D(i)
  sched.inline %t
