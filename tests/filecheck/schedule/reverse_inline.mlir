// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The consumer is applied where its producer writes.
// CHECK-LABEL: func.func @elementwise(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 6 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 8 {
// CHECK-NEXT:     loop.block "D" [m = 6 at [[M]], n = 8 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<6x8xf32>) -> (%D[m, n] : memref<6x8xf32>)
// PAYLOAD: producer_consumer @elementwise D()
  sched.reverse_inline %d

// -----

// It writes where the element goes.
// CHECK-LABEL: func.func @transposed(
// CHECK-NEXT: loop.for "m" [[M:%\S+]] = 4 {
// CHECK-NEXT:   loop.for "n" [[N:%\S+]] = 6 {
// CHECK-NEXT:     loop.block "D" [m = 4 at [[M]], n = 6 at [[N]]]
// CHECK-NEXT:         (%a = %A[m, n] : memref<4x6xf32>) -> (%D[n, m] : memref<6x4xf32>)
func.func @transposed(%A: memref<4x6xf32>, %D: memref<6x4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<4x6xf32>
  loop.for "m" %m = 4 {
    loop.for "n" %n = 6 {
      loop.block "T" [m = 4 at %m, n = 6 at %n]
          (%x = %A[m, n] : memref<4x6xf32>) -> (%T[m, n] : memref<4x6xf32>) origin "T"[m, n] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  loop.for "n" %n = 6 {
    loop.for "m" %m = 4 {
      loop.block "D" [n = 6 at %n, m = 4 at %m]
          (%x = %T[m, n] : memref<4x6xf32>) -> (%D[n, m] : memref<6x4xf32>) origin "D"[n, m] {
        %0 = arith.addf %x, %x : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script D()
  sched.reverse_inline %d

// -----

// What it reads besides is read there.
// CHECK-LABEL: func.func @another_operand(
// CHECK-NEXT: loop.for "h" [[H:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "D" [i = 10 at [[H]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>, %b = %B[i] : memref<10xf32>) -> (%D[i] : memref<10xf32>)
// PAYLOAD: double_twice @another_operand D() s/%D: memref<10xf32>/%B: memref<10xf32>, %D: memref<10xf32>/ \
//   s/(%x = %T[i] : memref<10xf32>)/(%x = %T[i] : memref<10xf32>, %y = %B[i] : memref<10xf32>)/ \
//   s/addf %x, %x/first/ s/addf %x, %x/mulf %x, %y/ s/first/addf %x, %x/
  sched.reverse_inline %d
