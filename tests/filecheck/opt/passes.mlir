// RUN: strata-opt %s -p canonicalize,cse | filecheck %s
// RUN: strata-opt %s -p canonicalize -p cse | filecheck %s
// RUN: strata-opt %s --pass-pipeline='builtin.module(canonicalize, func.func(cse))' | filecheck %s
// RUN: strata-opt %s --pass-pipeline='any(builtin.module(canonicalize),cse)' | filecheck %s
// RUN: strata-opt %s --print-ir-before-all --print-ir-after-all -p canonicalize,cse -o %t 2>&1 | filecheck %s --check-prefix=DUMP
// RUN: strata-opt %s --timing -p canonicalize -o %t 2>&1 | filecheck %s --check-prefix=TIMING
// RUN: strata-opt --list-passes | filecheck %s --check-prefix=LIST
// RUN: strata-opt --list-foreign-passes | filecheck %s --check-prefix=FOREIGN
// RUN: strata-opt %s -canonicalize --cse | filecheck %s

// CHECK-LABEL: func.func @f
// CHECK-NEXT:    %[[S:.*]] = arith.addi %x, %x : i32
// CHECK-NEXT:    %[[P:.*]] = arith.muli %[[S]], %[[S]] : i32
// CHECK-NEXT:    func.return %[[P]] : i32
func.func @f(%x : i32) -> i32 {
  %0 = arith.addi %x, %x : i32
  %1 = arith.addi %x, %x : i32
  %dead = arith.subi %x, %x : i32
  %2 = arith.muli %0, %1 : i32
  func.return %2 : i32
}

// DUMP:      // -----// IR Dump Before canonicalize //----- //
// DUMP:      arith.subi
// DUMP:      // -----// IR Dump After canonicalize //----- //
// DUMP-NOT:  arith.subi
// DUMP:      // -----// IR Dump Before cse //----- //
// DUMP-COUNT-2: arith.addi
// DUMP:      // -----// IR Dump After cse //----- //
// DUMP:      arith.addi
// DUMP-NOT:  arith.addi

// TIMING:      seconds   share  step
// TIMING-NEXT: parse
// TIMING-NEXT: verify
// TIMING-NEXT: canonicalize
// TIMING:      total

// LIST:      passes:
// LIST:      te-to-loop {{.*}}tensor expressions
// LIST:      pipelines:
// LIST:      cpu {{.*}}= check-combiners,te-to-loop,
// LIST:      --list-foreign-passes lists {{[0-9]+}} passes of xDSL

// FOREIGN:      xDSL's passes:
// FOREIGN:      canonicalize
