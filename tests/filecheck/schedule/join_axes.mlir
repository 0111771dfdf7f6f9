// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The axes that a fused loop runs over become one; the elements are the same.
// CHECK-LABEL: func.func @spatial(
// CHECK-NEXT: loop.for "m_n" [[M_N:%\S+]] = 48 {
// CHECK-NEXT:   loop.for "k" [[K:%\S+]] = 4 {
// CHECK-NEXT:     loop.block "C" [m_n = 48 at [[M_N]], reduce k = 4 at [[K]]] combine [add]
// CHECK-NEXT:         (%a = %A[m_n floordiv 8, k] : memref<6x4xf32>, %b = %B[k, m_n mod 8] : memref<4x8xf32>) -> (%C[m_n floordiv 8, m_n mod 8] : memref<6x8xf32>) origin "C"[m_n floordiv 8, m_n mod 8, k]
// PAYLOAD: matmul @spatial C(m, n, k)
  %x = sched.fuse %m, %n
  sched.join_axes %c

// -----

// An index that a body reads is computed of the new axis, and a row-major offset is that axis again.
// CHECK-LABEL: func.func @index(
// CHECK-NEXT: loop.for "i_j" [[I_J:%\S+]] = 24 {
// CHECK-NEXT:   loop.block "D" [i_j = 24 at [[I_J]]]
// CHECK-NEXT:       (%a = %A[i_j] : memref<24xi64>) -> (%D[i_j floordiv 6, i_j mod 6] : memref<4x6xi64>) origin "D"[i_j floordiv 6, i_j mod 6] {
func.func @index(%A: memref<24xi64>, %D: memref<4x6xi64>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    loop.for "j" %j = 6 {
      loop.block "D" [i = 4 at %i, j = 6 at %j]
          (%x = %A[6 * i + j] : memref<24xi64>) -> (%D[i, j] : memref<4x6xi64>) origin "D"[i, j] {
        %0 = loop.index "j" : index
        %1 = arith.index_cast %0 : index to i64
        %2 = arith.addi %x, %1 : i64
        loop.yield %2 : i64
      }
    }
  }
  func.return
}

// PAYLOAD: script D(i, j)
  %x = sched.fuse %i, %j
  sched.join_axes %d
