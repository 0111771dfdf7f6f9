// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// There is no such intrinsic.
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: there is no intrinsic 'amx' (there are dot.*, interleave.*, tile.*, mma.*, warp.*, quad.*, half.*)}}
  sched.tensorize %j with "amx"

// -----

// The nest is deeper.
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'k.0': 3 nested loops are not the 2 of 'dot.i32.u8i8x4'}}
  sched.tensorize %k.0 with "dot.i32.u8i8x4"

// -----

// The extents differ.
// PAYLOAD: matmul_u8i8 s/16/8/g
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': loops of 8 x 4 iterations are not the 16 x 4 of 'dot.i32.u8i8x4'}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The product is of other dtypes.
// PAYLOAD: matmul_u8i8 s/ui8/i8/g s/extui/extsi/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': block 'C' does not yield ui8 widened by arith.extui times i8 widened by arith.extsi, as 'dot.i32.u8i8x4' does}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The product is of other values.
// PAYLOAD: matmul_u8i8 s/arith.muli/arith.addi/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': block 'C' does not yield ui8 widened by arith.extui times i8 widened by arith.extsi, as 'dot.i32.u8i8x4' does}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The sum is not a sum.
// PAYLOAD: matmul_u8i8 s/[add]/[max]/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': block 'C' does not add to one target, which 'dot.i32.u8i8x4' does}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The sum is wider than the instruction's.
// PAYLOAD: matmul_u8i8 s/i32/i64/g
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': 'C' holds i64, where 'dot.i32.u8i8x4' takes i32}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The right operand is not in groups.
// PAYLOAD: matmul_u8i8 s/2x16x4xi8/8x16xi8/g s/k floordiv 4, j, k mod 4/k, j/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': 'B' steps by 1 along loop 'j', where 'dot.i32.u8i8x4' steps by 4}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The right operand is in the order of another instruction.
// PAYLOAD: matmul_u8i8 s/memref<2x16x4xi8>/memref<2x4x16xi8>/ s/j, k mod 4] : memref<2x16x4xi8>/k mod 4, j] : memref<2x4x16xi8>/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': 'B' steps by 1 along loop 'j', where 'dot.i32.u8i8x4' steps by 4}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The right operand goes round.
// PAYLOAD: matmul_u8i8 s/4, j/4, (j + 1) mod 16/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': 'B' does not move in equal steps along loop 'j'}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// One loop is vectorized.
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  sched.vectorize %j
  // expected-error@below {{tensorize: loop 'j': it is vectorized already, not serial}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// A loop around is vectorized.
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  sched.vectorize %i
  // expected-error@below {{tensorize: loop 'j': it stands inside the vectorized loop 'i'}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// Another block is in the nest.
// PAYLOAD: matmul_u8i8
// PAYLOAD: loops_C_ijk_by_4
  %A.pack = sched.pack %C "A" tiles [1, 4]
  sched.compute_at %A.pack at %j
  // expected-error@below {{tensorize: loop 'j': the body of loop 'j' is more than one loop or block}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The group that k ends in lies beyond the operand.
// PAYLOAD: matmul_u8i8 s/2x8xui8/2x6xui8/g s/= 8/= 6/g
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': beyond the guard of block 'C' it would touch 'A' outside its shape}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The group that k ends in is not zero.
// PAYLOAD: matmul_u8i8 s/%k = 8/%k = 6/ s/reduce k = 8/reduce k = 6/
// PAYLOAD: loops_C_ijk_by_4
  // expected-error@below {{tensorize: loop 'j': beyond the guard of block 'C' its operands are not zero; pack them first}}
  sched.tensorize %j with "dot.i32.u8i8x4"

// -----

// The vector that n ends in lies beyond the result.
// PAYLOAD: matmul_u8i8 C(i, j, k) s/2x16x4xi8/8x16xi8/g s/k floordiv 4, j, k mod 4/k, j/ s/16/20/g
  %j.0, %j.1 = sched.split %j by [-1, 16] : !sched.loop, !sched.loop
  %k.0, %k.1 = sched.split %k by [-1, 4] : !sched.loop, !sched.loop
  sched.reorder %i, %j.0, %k.0, %j.1, %k.1
  %B.pack = sched.pack %c "B" tiles [4, 16] order [1, 0, 3, 2]
  // expected-error@below {{tensorize: loop 'j.1': beyond the guard of block 'C' it would touch 'C' outside its shape}}
  sched.tensorize %j.1 with "dot.i32.u8i8x4"

// -----

// Of floats both operands must be zero: 0 times NaN is NaN.
func.func @f(%A: memref<2x6xbf16>, %B: memref<5x16xbf16>, %C: memref<2x16xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 2 {
    loop.for "j" %j = 16 {
      loop.for "k" %k = 5 {
        loop.block "C" [i = 2 at %i, j = 16 at %j, reduce k = 5 at %k] combine [add]
            (%a = %A[i, k] : memref<2x6xbf16>, %b = %B[k, j] : memref<5x16xbf16>) -> (%C[i, j] : memref<2x16xf32>) origin "C"[i, j, k] {
          %0 = arith.extf %a : bf16 to f32
          %1 = arith.extf %b : bf16 to f32
          %2 = arith.mulf %0, %1 : f32
          loop.yield %2 : f32
        }
      }
    }
  }
  func.return
}

// PAYLOAD: script C(i, j, k)
  %k.0, %k.1 = sched.split %k by [-1, 2] : !sched.loop, !sched.loop
  sched.reorder %i, %k.0, %j, %k.1
  %B.pack = sched.pack %c "B" tiles [2, 16] order [1, 0, 3, 2]
  // expected-error@below {{tensorize: loop 'j': beyond the guard of block 'C' its operands are not both zero; pack them first}}
  sched.tensorize %j with "dot.f32.bf16x2"

// -----

// What is no fragment is not stored as one.
func.func @f(%A: memref<16x16xf32>, %C: memref<16x16xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 16 {
    loop.for "j" %j = 16 {
      loop.block "C" [i = 16 at %i, j = 16 at %j]
          (%a = %A[i, j] : memref<16x16xf32>) -> (%C[i, j] : memref<16x16xf32>) origin "C"[i, j] {
        loop.yield %a : f32
      }
    }
  }
  func.return
}

// PAYLOAD: script C(i, j)
  // expected-error@below {{tensorize: loop 'i': 'A' does not lie in a fragment, where 'tile.store.f32' has it}}
  sched.tensorize %i with "tile.store.f32"
