// RUN: strata-opt %s -p apply-schedule --split-input-file | filecheck %s

// The end is the index of the only read behind the loop.
// CHECK-LABEL: func.func @f(
// CHECK: loop.for "t" [[T:%\S+]] = 8 {
// CHECK-NEXT: loop.block "M" [i = 4 at [[I:%\S+]], t = 8 at [[T]]] where ([[I]] * 2 - [[T]] >= 0)
func.func @f(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  sched.trim %t

// -----

// What is read at the last iteration has no other end.
// CHECK-LABEL: func.func @all(
// CHECK: loop.block "M" [i = 4 at {{%\S+}}, t = 8 at {{%\S+}}]{{$}}
func.func @all(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[7] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  sched.trim %t

// -----

// A copy that was added since has the same end.
// CHECK-LABEL: func.func @copies(
// CHECK: loop.block "A.local" {{.*}} where ([[I:%\S+]] * 2 - [[T:%\S+]] >= 0)
// CHECK: loop.block "M" {{.*}} where ([[I]] * 2 - [[T]] >= 0)
func.func @copies(%A: memref<4x8xf32>, %Y: memref<4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 4 {
    %M = loop.alloc "M" : memref<8xf32>
    loop.for "t" %t = 8 {
      loop.block "M" [i = 4 at %i, t = 8 at %t]
          (%m = %M[t - 1] where (t - 1 >= 0) else 2.0 : memref<8xf32>, %a = %A[i, t] : memref<4x8xf32>)
          -> (%M[t] : memref<8xf32>) origin "M"[i, t] {
        %0 = arith.mulf %m, %a : f32
        loop.yield %0 : f32
      }
    }
    loop.block "Y" [j = 4 at %i] (%m = %M[2 * j] : memref<8xf32>) -> (%Y[j] : memref<4xf32>) origin "Y"[j] {
      loop.yield %m : f32
    }
  }
  func.return
}
// PAYLOAD: script M(i, t)
  sched.trim %t
  %copy = sched.cache_read %m "A" in "local"
  sched.compute_at %copy at %t
  sched.trim %t
