// exp(A @ B) @ E as tensor expressions: three te.compute ops, each one element at a time.
//
//   python tools/opt.py examples/mm_exp_mm.mlir                        parse, verify, print
//   python tools/opt.py examples/mm_exp_mm.mlir -p te-to-loop          the loop nests
//   python tools/opt.py examples/mm_exp_mm.mlir -p te-to-low           scf, memref, vector
//   python tools/opt.py examples/mm_exp_mm.mlir -p cpu -t asm          machine code
//   python -m compiler run examples/mm_exp_mm.mlir                     run it, compare it, time it

func.func @mm_exp_mm(%A: tensor<64x32xf32>, %B: tensor<32x48xf32>, %E: tensor<48x96xf32>) -> tensor<64x96xf32> {
  // T[m, l] = sum over k of A[m, k] * B[k, l]. The axes in brackets give the shape of the result; `combine [add]`
  // says how the values along the reduce axis come together, in any order.
  %T = te.compute "T" [m = 64, l = 48, reduce k = 32] combine [add]
      (%a = %A[m, k] : tensor<64x32xf32>, %b = %B[k, l] : tensor<32x48xf32>) -> tensor<64x48xf32> {
    %0 = arith.mulf %a, %b : f32
    te.yield %0 : f32
  }
  // X[m, l] = exp(T[m, l]).
  %X = te.compute "X" [m = 64, l = 48] (%t = %T[m, l] : tensor<64x48xf32>) -> tensor<64x48xf32> {
    %0 = math.exp %t : f32
    te.yield %0 : f32
  }
  // C[m, n] = sum over l of X[m, l] * E[l, n].
  %C = te.compute "C" [m = 64, n = 96, reduce l = 48] combine [add]
      (%x = %X[m, l] : tensor<64x48xf32>, %e = %E[l, n] : tensor<48x96xf32>) -> tensor<64x96xf32> {
    %0 = arith.mulf %x, %e : f32
    te.yield %0 : f32
  }
  func.return %C : tensor<64x96xf32>
}
