// RUN: env STRATA_MACHINE=avx2 strata-opt %s -t llvm | filecheck %s

// Without AVX-512, the rows of a ragged tile are branches around plain stores.
// CHECK-LABEL: @"rows.body"
func.func @rows(%n: memref<1xindex>, %A: memref<8xf32>, %C: memref<8xf32>) attributes {outputs = 1 : i64} {
  // CHECK: br i1 %{{.*}}, label %[[THEN:.*]], label %[[AFTER:.*]]
  // CHECK: [[THEN]]:
  // CHECK: store <8 x float>
  // CHECK-NEXT: br label %[[AFTER]]
  // CHECK-NOT: masked.store
  %zero = arith.constant 0 : index
  %count = memref.load %n[%zero] : memref<1xindex>
  %some = arith.cmpi slt, %zero, %count : index
  %mask = vector.broadcast %some : i1 to vector<8xi1>
  %a = vector.load %A[%zero] : memref<8xf32>, vector<8xf32>
  vector.maskedstore %C[%zero], %mask, %a : memref<8xf32>, vector<8xi1>, vector<8xf32>
  func.return
}

// The last columns alone are stored under a mask.
// CHECK-LABEL: @"columns.body"
func.func @columns(%n: memref<1xindex>, %A: memref<8xf32>, %C: memref<8xf32>) attributes {outputs = 1 : i64} {
  // CHECK: icmp sge i64 %{{.*}}, 8
  // CHECK-NEXT: br i1 %{{.*}}, label %[[WHOLE:.*]], label %[[SOME:.*]]
  // CHECK: [[WHOLE]]:
  // CHECK: store <8 x float>
  // CHECK: [[SOME]]:
  // CHECK: call void @llvm.masked.store
  %zero = arith.constant 0 : index
  %count = memref.load %n[%zero] : memref<1xindex>
  %mask = vector.create_mask %count : vector<8xi1>
  %a = vector.load %A[%zero] : memref<8xf32>, vector<8xf32>
  vector.maskedstore %C[%zero], %mask, %a : memref<8xf32>, vector<8xi1>, vector<8xf32>
  func.return
}
