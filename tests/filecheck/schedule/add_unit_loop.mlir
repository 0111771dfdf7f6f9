// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// A nest without loops over results gets one; the name of a second is another.
// CHECK-LABEL: func.func @sum(
// CHECK-NEXT: loop.for "unit.1" %{{\S+}} = 1 {
// CHECK-NEXT:   loop.for "unit" %{{\S+}} = 1 {
// CHECK-NEXT:     loop.for "k" [[K:%\S+]] = 12 {
// CHECK-NEXT:       loop.block "S" [reduce k = 12 at [[K]]] combine [add]
func.func @sum(%A: memref<12xf32>, %S: memref<f32>) attributes {outputs = 1 : i64} {
  loop.for "k" %k = 12 {
    loop.block "S" [reduce k = 12 at %k] combine [add]
        (%x = %A[k] : memref<12xf32>) -> (%S[] : memref<f32>) origin "S"[k] {
      loop.yield %x : f32
    }
  }
  func.return
}

// PAYLOAD: script S(k)
  %unit = sched.add_unit_loop %k
  %other = sched.add_unit_loop %unit
