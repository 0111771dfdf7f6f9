// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// All loops of the nest are marked; the outermost names the intrinsic. They mean what they meant.
// CHECK-LABEL: func.func @f(
// CHECK-NEXT: loop.for "i" [[M:%\S+]] = 2 {
// CHECK-NEXT:   loop.for "k.0" [[K:%\S+]] = 2 {
// CHECK-NEXT:     loop.for "j" [[N:%\S+]] = 16 tensorized "dot.i32.u8i8x4" {
// CHECK-NEXT:       loop.for "k.1" [[G:%\S+]] = 4 tensorized {
// CHECK-NEXT:         loop.block "C" [i = 2 at [[M]], j = 16 at [[N]], reduce k = 8 at [[K]] * 4 + [[G]]] combine [add]
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The loops and the operands may be in another order. Beyond the guard, which stays, the packed operands are zero.
// CHECK-LABEL: func.func @ragged(
// CHECK: loop.for "k.1" [[G:%\S+]] = 4 tensorized "dot.i32.u8i8x4" {
// CHECK-NEXT: loop.for "j" [[N:%\S+]] = 16 tensorized {
// CHECK-NEXT: where (%k.0 * -4 - [[G]] + 5 >= 0) combine [add]
func.func @ragged(%A: memref<2x6xui8>, %B: memref<6x16xi8>, %C: memref<2x16xi32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 2 {
    loop.for "j" %j = 16 {
      loop.for "k" %k = 6 {
        loop.block "C" [i = 2 at %i, j = 16 at %j, reduce k = 6 at %k] combine [add]
            (%b = %B[k, j] : memref<6x16xi8>, %a = %A[i, k] : memref<2x6xui8>) -> (%C[i, j] : memref<2x16xi32>) origin "C"[i, j, k] {
          %0 = arith.extsi %b : i8 to i32
          %1 = arith.extui %a : i8 to i32
          %2 = arith.muli %0, %1 : i32
          loop.yield %2 : i32
        }
      }
    }
  }
  func.return
}

// PAYLOAD: script C(i, j, k)
  %k.0, %k.1 = sched.split %k by [-1, 4] : !sched.loop, !sched.loop
  sched.reorder %i, %k.0, %k.1, %j
  %B.pack = sched.pack %c "B" tiles [4, 16] order [1, 0, 3, 2]
  %A.pack = sched.pack %c "A" tiles [1, 4]
  sched.tensorize %k.1 with "dot.i32.u8i8x4"
