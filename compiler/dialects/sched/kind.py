"""The kinds of loops: unroll, vectorize, parallel, bind, tensorize; and annotate."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from compiler.dialects.sched.base import LoopType, SchedOp, check_choice

BINDINGS = ("block_x", "block_y", "block_z", "thread_x", "thread_y", "thread_z", "vthread")


@irdl_op_definition
class UnrollOp(SchedOp):
    """Mark a loop to be unrolled by the lowering.

    Return modes: consumes nothing.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.unroll %l
      transform.yield
    }
    ```
    """

    name = "sched.unroll"

    loop = operand_def(LoopType())

    assembly_format = "$loop attr-dict"


@irdl_op_definition
class VectorizeOp(SchedOp):
    """Mark a loop whose iterations become the lanes of vectors.

    Return modes: consumes nothing; refused where its iterations depend on each other.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.vectorize %l
      transform.yield
    }
    ```
    """

    name = "sched.vectorize"

    loop = operand_def(LoopType())

    assembly_format = "$loop attr-dict"


@irdl_op_definition
class ParallelOp(SchedOp):
    """Mark a loop whose iterations run on several threads.

    Return modes: consumes nothing; refused where its iterations depend on each other.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.parallel %m
      transform.yield
    }
    ```
    """

    name = "sched.parallel"

    loop = operand_def(LoopType())

    assembly_format = "$loop attr-dict"


@irdl_op_definition
class BindOp(SchedOp):
    """Bind a loop to a hardware index: block_x to block_z, thread_x to thread_z, or vthread.

    Return modes: consumes nothing; refused where its iterations depend on each other.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.bind %m to "block_x"
      transform.yield
    }
    ```
    """

    name = "sched.bind"

    loop = operand_def(LoopType())
    thread = prop_def(StringAttr)

    assembly_format = "$loop `to` $thread attr-dict"

    def verify_(self) -> None:
        check_choice("thread index", self.thread, BINDINGS)


@irdl_op_definition
class TensorizeOp(SchedOp):
    """Mark the nest from a loop inward as one that a declared intrinsic replaces.

    Return modes: consumes nothing; refused where the nest computes something else than the intrinsic.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %k.0, %l, %k.1 = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop, !sched.loop
      sched.tensorize %l with "dot.i32.u8i8x4"
      transform.yield
    }
    ```
    """

    name = "sched.tensorize"

    loop = operand_def(LoopType())
    intrinsic = prop_def(StringAttr)

    assembly_format = "$loop `with` $intrinsic attr-dict"


@irdl_op_definition
class AnnotateOp(SchedOp):
    """Attach a named attribute to a loop, for a lowering or rule that knows it.

    Return modes: consumes nothing.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.annotate %m "hint" = 4 : i64
      transform.yield
    }
    ```
    """

    name = "sched.annotate"

    loop = operand_def(LoopType())
    key = prop_def(StringAttr)
    value = prop_def()

    assembly_format = "$loop $key `=` $value attr-dict"


OPS = (UnrollOp, VectorizeOp, ParallelOp, BindOp, TensorizeOp, AnnotateOp)
