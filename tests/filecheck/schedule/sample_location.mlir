// RUN: strata-opt %s -p 'apply-schedule{verify=true}' --split-input-file | filecheck %s

// The first of the loops around all consumers.
// CHECK-LABEL: func.func @at_a_loop(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   [[T:%\S+]] = loop.alloc "T" : memref<3xf32>
// CHECK-NEXT:   loop.for "T.i" [[T_I:%\S+]] = 3 {
// CHECK-NEXT:     loop.block "T" [i = 10 at [[I]] + [[T_I]], w.0 = 8 at [[I]]]
// CHECK-NEXT:         (%a = %A[i] : memref<10xf32>) -> ([[T]][i - w.0] : memref<3xf32>)
// CHECK:            loop.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][0] : memref<3xf32>, %t_1 = [[T]][1] : memref<3xf32>, %t_2 = [[T]][2] : memref<3xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @at_a_loop(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %at = sched.sample_location %t decision 0
  sched.compute_at %t at %at
  transform.yield
}

// -----

// Minus one leaves the block where it is.
// CHECK-LABEL: func.func @stays(
// CHECK-NEXT: [[T:%\S+]] = loop.alloc "T" : memref<10xf32>
// CHECK-NEXT: loop.for "h" [[H:%\S+]] = 10 {
// CHECK-NEXT:   loop.block "T" [i = 10 at [[H]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>) -> ([[T]][i] : memref<10xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%t = [[T]][i] : memref<10xf32>, %t_1 = [[T]][i + 1] : memref<10xf32>, %t_2 = [[T]][i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
// CHECK:          loop.yield
// CHECK-NEXT:   }
// CHECK-NEXT: }
func.func @stays(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %at = sched.sample_location %t decision -1
  sched.compute_at %t at %at
  transform.yield
}

// -----

// Minus two inlines it.
// CHECK-LABEL: func.func @inlined(
// CHECK-NEXT: loop.for "i" [[I:%\S+]] = 8 {
// CHECK-NEXT:   loop.block "S" [i = 8 at [[I]]]
// CHECK-NEXT:       (%a = %A[i] : memref<10xf32>, %a_1 = %A[i + 1] : memref<10xf32>, %a_2 = %A[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>)
func.func @inlined(%A: memref<10xf32>, %S: memref<8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<10xf32>
  loop.for "h" %h = 10 {
    loop.block "T" [i = 10 at %h]
        (%x = %A[i] : memref<10xf32>) -> (%T[i] : memref<10xf32>) origin "T"[i] {
      %0 = arith.addf %x, %x : f32
      loop.yield %0 : f32
    }
  }
  loop.for "i" %i = 8 {
    loop.block "S" [i = 8 at %i]
        (%x = %T[i] : memref<10xf32>, %y = %T[i + 1] : memref<10xf32>, %z = %T[i + 2] : memref<10xf32>) -> (%S[i] : memref<8xf32>) origin "S"[i] {
      %0 = arith.mulf %x, %y : f32
      %1 = arith.addf %0, %z : f32
      loop.yield %1 : f32
    }
  }
  func.return
}

transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %t = sched.get_block %f "T"
  %at = sched.sample_location %t decision -2
  sched.compute_at %t at %at
  transform.yield
}
