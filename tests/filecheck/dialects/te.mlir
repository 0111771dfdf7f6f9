// RUN: strata-opt %s | strata-opt - | filecheck %s
// RUN: strata-opt %s --print-op-generic | strata-opt - | filecheck %s

// CHECK-LABEL: @matmul
func.func @matmul(%A: tensor<4x8xf32>, %B: tensor<8x6xf32>) -> tensor<4x6xf32> {
  // CHECK: %C = te.compute "C" [m = 4, l = 6, reduce k = 8] combine [add]
  // CHECK-NEXT: (%a = %A[m, k] : tensor<4x8xf32>, %b = %B[k, l] : tensor<8x6xf32>) -> tensor<4x6xf32> {
  %C = te.compute "C" [m = 4, l = 6, reduce k = 8] combine [add]
      (%a = %A[m, k] : tensor<4x8xf32>, %b = %B[k, l] : tensor<8x6xf32>) -> tensor<4x6xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<4x6xf32>
}

// CHECK-LABEL: @conditions
func.func @conditions(%A: tensor<8xf32>) -> tensor<10xf32> {
  // CHECK: where (h - 1 >= 0, -h + 8 >= 0) else -inf : tensor<8xf32>
  %P = te.compute "P" [h = 10] (%a = %A[h - 1] where (h - 1 >= 0, 8 - h >= 0) else -inf : tensor<8xf32>) -> tensor<10xf32> {
    te.yield %a : f32
  }
  func.return %P : tensor<10xf32>
}

// CHECK-LABEL: @two_results
func.func @two_results(%A: tensor<4x8xi32>) -> tensor<4xi32> {
  // CHECK: combine [max, add]
  // CHECK-NEXT: (%a = %A[i, k] : tensor<4x8xi32>) -> tensor<4xi32>, tensor<4xi32>
  %0, %1 = te.compute "M" [i = 4, reduce k = 8] combine [max, add] (%a = %A[i, k] : tensor<4x8xi32>) -> tensor<4xi32>, tensor<4xi32> {
    te.yield %a, %a : i32, i32
  }
  func.return %1 : tensor<4xi32>
}

// CHECK-LABEL: @index
func.func @index(%A: tensor<6xf32>) -> tensor<12xindex> {
  // CHECK: te.index "i" : index
  %I = te.compute "I" [i = 12] (%a = %A[i floordiv 2] : tensor<6xf32>) -> tensor<12xindex> {
    %0 = te.index "i" : index
    te.yield %0 : index
  }
  func.return %I : tensor<12xindex>
}

// CHECK-LABEL: @scalar
func.func @scalar(%A: tensor<6xf32>) -> tensor<f32> {
  // CHECK: %A[(k * 5) mod 6] : tensor<6xf32>) -> tensor<f32>
  %S = te.compute "S" [reduce k = 6] combine [add] (%a = %A[(k * 5) mod 6] : tensor<6xf32>) -> tensor<f32> {
    te.yield %a : f32
  }
  func.return %S : tensor<f32>
}

// A region combines all results, from values that change nothing.
// CHECK-LABEL: @argmax
func.func @argmax(%A: tensor<4x8xf32>) -> tensor<4xi64> {
  // CHECK: te.compute "M" [m = 4, reduce k = 8]
  // CHECK-NEXT: combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
  // CHECK: te.yield %x, %y : f32, i64
  // CHECK-NEXT: }
  // CHECK-NEXT: (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
  %V, %I = te.compute "M" [m = 4, reduce k = 8]
    combine (%v = -inf : f32, %i = 9223372036854775807 : i64) with (%w, %j) {
      %gt = arith.cmpf ogt, %w, %v : f32
      %eq = arith.cmpf oeq, %w, %v : f32
      %lt = arith.cmpi slt, %j, %i : i64
      %first = arith.andi %eq, %lt : i1
      %take = arith.ori %gt, %first : i1
      %x = arith.select %take, %w, %v : f32
      %y = arith.select %take, %j, %i : i64
      te.yield %x, %y : f32, i64
    } (%a = %A[m, k] : tensor<4x8xf32>) -> tensor<4xf32>, tensor<4xi64> {
    %0 = te.index "k" : index
    %1 = arith.index_cast %0 : index to i64
    te.yield %a, %1 : f32, i64
  }
  func.return %I : tensor<4xi64>
}

// A value read of unsigned bytes is signless; what is read outside is a literal of the element type.
// CHECK-LABEL: @bytes
func.func @bytes(%A: tensor<4xui8>) -> tensor<5xui8> {
  // CHECK: te.compute "B" [i = 5]
  // CHECK-NEXT: (%a = %A[i - 1] where (i - 1 >= 0) else 200 : tensor<4xui8>) -> tensor<5xui8>
  // CHECK: te.yield %a : i8
  %B = te.compute "B" [i = 5] (%a = %A[i - 1] where (i - 1 >= 0) else 200 : tensor<4xui8>) -> tensor<5xui8> {
    te.yield %a : i8
  }
  func.return %B : tensor<5xui8>
}
