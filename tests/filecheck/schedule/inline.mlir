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
func.func @chain(%A: memref<10xf32>, %D: memref<10xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  %U = loop.alloc "U" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "e" %e = 10 {
    loop.block "U" [i = 10 at %e]
        (%x = %T[i] : memref<10xf32>) -> (%U[i] : memref<10xf32>) origin "U"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 10 {
    loop.block "D" [i = 10 at %i]
        (%x = %U[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>) origin "D"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  func.return
}

// PAYLOAD: script T() U()
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
