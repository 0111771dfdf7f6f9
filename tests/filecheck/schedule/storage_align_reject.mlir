// RUN: strata-opt %s -p apply-schedule --split-input-file --verify-diagnostics

// The block writes a temporary.
// PAYLOAD: producer_consumer D()
  // expected-error@below {{storage_align: buffer 'D': it is an argument, not a temporary}}
  sched.storage_align %d dim 0 factor 32 offset 8

// -----

// There is a dimension inside it, which grows.
// PAYLOAD: producer_consumer T()
  // expected-error@below {{storage_align: buffer 'T': dimension 1 has no dimension inside it that could grow}}
  sched.storage_align %t dim 1 factor 32 offset 8

// -----

// A length gives that stride.
func.func @f(%A: memref<2x3x4xf32>, %D: memref<2x3x4xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<2x3x4xf32>
  loop.for "a" %a = 2 {
    loop.for "b" %b = 3 {
      loop.for "c" %c = 4 {
        loop.block "T" [i = 2 at %a, j = 3 at %b, k = 4 at %c]
            (%x = %A[i, j, k] : memref<2x3x4xf32>) -> (%T[i, j, k] : memref<2x3x4xf32>) origin "T"[i, j, k] {
          %0 = arith.addf %x, %x : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  loop.for "d" %d = 2 {
    loop.for "e" %e = 3 {
      loop.for "g" %g = 4 {
        loop.block "D" [i = 2 at %d, j = 3 at %e, k = 4 at %g]
            (%x = %T[i, j, k] : memref<2x3x4xf32>) -> (%D[i, j, k] : memref<2x3x4xf32>) origin "D"[i, j, k] {
          %0 = arith.addf %x, %x : f32
          loop.yield %0 : f32
        }
      }
    }
  }
  func.return
}

// PAYLOAD: script T()
  // expected-error@below {{storage_align: buffer 'T': no length of dimension 1 gives that stride}}
  sched.storage_align %t dim 0 factor 8 offset 3
