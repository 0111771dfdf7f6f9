// RUN: strata-opt %s -p loop-to-low | filecheck %s --check-prefix=LOW
// RUN: strata-opt %s -p cpu -t llvm | filecheck %s --check-prefix=LLVM

// Calls write the halves of one buffer, which lives from the first half on: d has no room in it.
// LOW-LABEL: func.func @main(%x: memref<16xf32>, %y: memref<32xf32>)
// LOW: %[[WHOLE:.*]] = memref.alloc() : memref<32xf32>
// LOW-NEXT: %[[BYTES:.*]] = builtin.unrealized_conversion_cast %[[WHOLE]] : memref<32xf32> to memref<128xi8>
// LOW-NEXT: %[[ZERO:.*]] = arith.constant 0 : index
// LOW-NEXT: %a = memref.view %[[BYTES]][%[[ZERO]]][] : memref<128xi8> to memref<16xf32>
// LOW: func.call @half(%x, %a)
// LOW: func.call @half(%a, %d)
// LOW: %[[HALF:.*]] = arith.constant 64 : index
// LOW-NEXT: %b = memref.view %[[BYTES]][%[[HALF]]][] : memref<128xi8> to memref<16xf32>
// LOW-NEXT: func.call @half(%d, %b)
// LOW-NEXT: func.call @both(%[[WHOLE]], %y)

// LLVM-LABEL: define internal void @"main.body"
// LLVM: ptr noalias nonnull align 64 dereferenceable(192) %s0
// LLVM: %[[D:.*]] = getelementptr nusw i8, ptr %s0, i64 128
// LLVM: call void @"half"(ptr %a0, ptr %s0, ptr %scratch)
// LLVM: call void @"half"(ptr %s0, ptr %[[D]], ptr %scratch)
// LLVM: %[[B:.*]] = getelementptr nusw i8, ptr %s0, i64 64
// LLVM: call void @"half"(ptr %[[D]], ptr %[[B]], ptr %scratch)
// LLVM: call void @"both"(ptr %s0, ptr %a1, ptr %scratch)
func.func @main(%x: memref<16xf32>, %y: memref<32xf32>) attributes {outputs = 1 : i64} {
  %c = loop.alloc "c" : memref<32xf32>
  %0 = builtin.unrealized_conversion_cast %c : memref<32xf32> to memref<128xi8>
  %1 = arith.constant 0 : index
  %a = memref.view %0[%1][] : memref<128xi8> to memref<16xf32>
  func.call @half(%x, %a) : (memref<16xf32>, memref<16xf32>) -> ()
  %d = loop.alloc "d" : memref<16xf32>
  func.call @half(%a, %d) : (memref<16xf32>, memref<16xf32>) -> ()
  %2 = arith.constant 64 : index
  %b = memref.view %0[%2][] : memref<128xi8> to memref<16xf32>
  func.call @half(%d, %b) : (memref<16xf32>, memref<16xf32>) -> ()
  func.call @both(%c, %y) : (memref<32xf32>, memref<32xf32>) -> ()
  func.return
}
func.func private @half(%x: memref<16xf32>, %y: memref<16xf32>) attributes {outputs = 1 : i64, te.group} {
  loop.for "i" %i = 16 {
    loop.block "y" [i = 16 at %i] (%a = %x[i] : memref<16xf32>) -> (%y[i] : memref<16xf32>) {
      %0 = arith.negf %a : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
func.func private @both(%x: memref<32xf32>, %y: memref<32xf32>) attributes {outputs = 1 : i64, te.group} {
  loop.for "i" %i = 32 {
    loop.block "y" [i = 32 at %i] (%a = %x[i] : memref<32xf32>) -> (%y[i] : memref<32xf32>) {
      %0 = arith.negf %a : f32
      loop.yield %0 : f32
    }
  }
  func.return
}
