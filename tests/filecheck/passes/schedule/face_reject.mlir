// RUN: not strata-opt %s -p 'tile{block=E axes=i sizes=4}' 2>&1 | filecheck %s --check-prefix=BLOCK
// RUN: not strata-opt %s -p 'tile{block=D axes=i,k sizes=4,4}' 2>&1 | filecheck %s --check-prefix=LOOP
// RUN: not strata-opt %s -p 'tile{block=D axes=i,j sizes=4}' 2>&1 | filecheck %s --check-prefix=SIZES
// RUN: not strata-opt %s -p 'compute-at{block=T at=E.i}' 2>&1 | filecheck %s --check-prefix=AT
// RUN: not strata-opt %s -p 'compute-at{block=T at=D.k}' 2>&1 | filecheck %s --check-prefix=ATLOOP
// RUN: not strata-opt %s -p 'compute-at{block=T at=i}' 2>&1 | filecheck %s --check-prefix=DOT
// RUN: not strata-opt %s -p 'unroll{block=D loop=i function=g}' 2>&1 | filecheck %s --check-prefix=FUNCTION
// RUN: not strata-opt %s -p 'bind-threads{block=D}' 2>&1 | filecheck %s --check-prefix=NOTHING
// RUN: not strata-opt %s -p 'transform-layout{block=T buffer=T by="(i, j) -> (i * j)"}' 2>&1 | filecheck %s --check-prefix=MAP
// RUN: not strata-opt %s -p 'parallelize{block=D loop=i},parallelize{block=D loop=j},vectorize{block=D loop=j}' 2>&1 | filecheck %s --check-prefix=LATER
// RUN: not strata-opt %s -p 'te-to-loop,loop-to-low,unroll{block=D loop=i}' 2>&1 | filecheck %s --check-prefix=LEVEL
// RUN: not strata-opt %s -p 'apply-schedule{script="%t.none"}' 2>&1 | filecheck %s --check-prefix=FILE

// A name that is wrong is at the pass's option. A refusal is at the block that the pass was given, or else at the function; after a pass that has rewritten the
// function the place is not known. Names that there are not are answered with those that there are.
// BLOCK: face_reject.mlir:28:1: error: get_block: block 'E': there is none (there are T, D)
// LOOP: face_reject.mlir:40:7: error: get_loops: block 'D': it has no loop 'k' (it has i, j)
// SIZES: face_reject.mlir:40:7: error: tile: 1 sizes do not fit 2 axes
// AT: <passes>:1:20: error: compute-at: there is no loop 'E.i' (there are i, j); a loop around a block is written block.loop, with a block of T, D
// ATLOOP: <passes>:1:20: error: compute-at: block 'D': it has no loop 'k' (it has i, j)
// DOT: <passes>:1:20: error: compute-at: there are 2 loops 'i': say which, 'T.i' or 'D.i'
// FUNCTION: error: the module has no function @g (it has f)
// NOTHING: face_reject.mlir:40:7: error: bind-threads: it names no loop
// MAP: <passes>:1:35: error: transform-layout: '(i, j) -> (i * j)' is not an affine map
// LATER: error: vectorize: loop 'j': it is parallel already
// LEVEL: error: unroll: no function of the module is at the loop level; lower it with te-to-loop
// FILE: error: the script {{.*}}.none cannot be read
func.func @f(%A: memref<6x8xf32>, %D: memref<6x8xf32>) attributes {outputs = 1 : i64} {
  %T = loop.alloc "T" : memref<6x8xf32>
  loop.for "i" %i = 6 {
    loop.for "j" %j = 8 {
      loop.block "T" [i = 6 at %i, j = 8 at %j]
          (%x = %A[i, j] : memref<6x8xf32>) -> (%T[i, j] : memref<6x8xf32>) {
        loop.yield %x : f32
      }
    }
  }
  loop.for "i" %i = 6 {
    loop.for "j" %j = 8 {
      loop.block "D" [i = 6 at %i, j = 8 at %j]
          (%x = %T[i, j] : memref<6x8xf32>) -> (%D[i, j] : memref<6x8xf32>) {
        loop.yield %x : f32
      }
    }
  }
  func.return
}
