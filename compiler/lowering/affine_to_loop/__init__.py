"""affine or scf -> loop: nests with constant bounds and affine accesses of memrefs become loops and blocks.

forms.py    values as quasi-affine forms over loops, truth values as conditions
memory.py   loads and stores, and the stores that may run between two ops
values.py   the scalar body of a block, from a value back to loads
updates.py  updates of an element by a combiner
bounds.py   the bounds of loops
builder.py  blocks, buffers and names of the program
nests.py    the walk over the ops
inits.py    stores of the identity that become inits of reductions
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from compiler.dialects import loop
from compiler.dialects.dominance import Refusal, verify_module
from compiler.dialects.functions import functions, has_tensors, outputs
from compiler.dialects.upstream.memref import GlobalOp
from compiler.dialects.upstream.walk import ops_in
from compiler.lowering.affine_to_loop.builder import Surroundings
from compiler.lowering.affine_to_loop.inits import with_inits
from compiler.lowering.affine_to_loop.memory import name_of
from compiler.lowering.affine_to_loop.nests import Nests
from compiler.lowering.affine_to_loop.values import is_scalar
from compiler.program.tree import Access, Buffer, Node, Program
from compiler.program.write import update
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class RaiseAffineToLoopPass(ModulePass):
    """Raise nests of affine and scf loops over memrefs to loops and blocks: one block a store.

        affine.for %i = 0 to 4 { affine.for %k = 0 to 8 {
          %a = affine.load %A[%i, %k]  %s = affine.load %S[%i]  %t = arith.addf %s, %a  affine.store %t, %S[%i] } }
      ->
        loop.for "i" = 4 { loop.for "k" = 8 {
          loop.block "S" [i, reduce k] combine [add] accumulate (%a = %A[i, k]) -> (%S[i]) { loop.yield %a } } }

    The number of iterations of each loop is constant, and indices and the conditions of stores are affine in the loop
    variables. Functions work in place on their arguments; results become trailing arguments, scalar arguments buffers
    of rank 0. Functions with tensors, at the loop level, and without a body stay. Raises LoweringError at the first op
    without a form, and for an access out of bounds.
    """

    name = "raise-affine-to-loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        raised = [function for function in functions(op) if is_below_loops(function)]
        for function in raised:
            program = _Function(function).program()
            update(function, program)
            for name in ("arg_attrs", "res_attrs"):
                function.properties.pop(name, None)
        _erase_unused(op)
        if raised:
            _verify(op)


def is_below_loops(function: FuncOp) -> bool:
    """Return whether a function has a body, with neither tensors nor ops of the loop level."""
    is_loop = any(isinstance(op, loop.ForOp | loop.Placed) for op in ops_in(function))
    return bool(function.body.blocks) and not is_loop and not has_tensors(function)


class _Function:
    """The program of one function under construction."""

    def __init__(self, function: FuncOp) -> None:
        self._function = function
        self._nests = Nests(function)

    def program(self) -> Program:
        """Return the loop program of the function. Raises LoweringError if it has none."""
        function = self._function
        name = function.sym_name.data
        if len(function.body.blocks) != 1:
            raise LoweringError(f"@{name} has {len(function.body.blocks)} blocks; its loops must be ops").at(function)
        last = function.body.block.last_op
        if not isinstance(last, ReturnOp):
            raise LoweringError(f"@{name} does not end with func.return").at(function)
        inputs = [self._argument(value) for value in function.body.block.args]
        results = self._results(last)
        nodes = self._nests.nodes(function.body.block, Surroundings())
        nodes += self._stores(last, results)
        body = with_inits(nodes, self._nests.elements, self._nests.forms.ranges)
        count = len(results) or outputs(function)
        return Program(name, (*inputs, *results), count, body, literals=tuple(self._nests.literals))

    def _argument(self, value: SSAValue) -> Buffer:
        """Create and record the buffer of an argument, of rank 0 for a scalar. Raises LoweringError for other types."""
        name = value.name_hint or f"arg{value.index}"  # type: ignore[attr-defined]
        if not isinstance(value.type, MemRefType) and not is_scalar(value.type):
            sentence = f"argument '{name}' is of type {value.type}, expected a memref or a number"
            raise LoweringError(sentence).at(self._function)
        buffer = self._nests.buffer(value, self._function, name=name)
        if isinstance(value.type, MemRefType):
            self._nests.buffers[value] = buffer.name
        else:
            self._nests.stored[value] = Access(buffer.name, ())
        return buffer

    def _results(self, last: ReturnOp) -> list[Buffer]:
        """Create and record the buffers of the results: allocations that are returned, and buffers of rank 0 for
        scalars. Raises LoweringError for a memref that is no allocation at the function's top or is returned twice."""
        results: list[Buffer] = []
        for number, value in enumerate(last.operands):
            buffer = self._nests.buffer(value, last, name=value.name_hint or f"result{number}")
            if isinstance(value.type, MemRefType):
                self._check_returned(value, last)
                self._nests.returned.add(value)
                self._nests.buffers[value] = buffer.name
            results.append(buffer)
        return results

    def _check_returned(self, value: SSAValue, last: ReturnOp) -> None:
        alloc = value.owner
        is_own = isinstance(alloc, memref.AllocOp) and alloc.parent is last.parent
        if not is_own or value in self._nests.returned or isinstance(value.type, TensorType):
            raise LoweringError(f"{name_of(value)} is returned, and is no allocation of its own").at(last)

    def _stores(self, last: ReturnOp, results: Sequence[Buffer]) -> list[Node]:
        """The blocks that write the returned scalars to their buffers, of `results` in the order of the operands."""
        pairs = [pair for pair in zip(last.operands, results, strict=True) if not isinstance(pair[0].type, MemRefType)]
        return [self._stored(last, value, buffer) for value, buffer in pairs]

    def _stored(self, last: ReturnOp, value: SSAValue, buffer: Buffer) -> Node:
        target = Access(buffer.name, ())
        return self._nests.block(last, target, lambda values: values.value(value), Surroundings())


def _erase_unused(module: ModuleOp) -> None:
    """Erase the private memref.global ops of a module that no op reads any more."""
    used = {SymbolTable.lookup_symbol(op, op.name_) for op in ops_in(module) if isinstance(op, memref.GetGlobalOp)}
    for op in list(module.ops):
        is_private = isinstance(op, GlobalOp) and op.sym_visibility is not None and op.sym_visibility.data == "private"
        if is_private and op not in used:
            op.detach()
            op.erase()


def _verify(module: ModuleOp) -> None:
    """Raise LoweringError at an op that does not verify, such as an access out of bounds."""
    try:
        verify_module(module)
    except Refusal as error:
        op: Operation = error.op
        raise LoweringError(str(error)).at(op) from error
