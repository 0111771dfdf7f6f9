"""Kernels: each nest at the top of a function, its block and thread loops as hardware indices."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.gpu import (
    BlockIdOp,
    DimensionAttr,
    DimensionEnum,
    LaunchFuncOp,
    ThreadIdOp,
)
from xdsl.dialects.gpu import FuncOp as KernelOp
from xdsl.dialects.gpu import ModuleOp as KernelsOp
from xdsl.dialects.gpu import ReturnOp as KernelReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from compiler.analysis.barriers import ASYNC, BLOCKS, THREADS, barriers, unordered
from compiler.intrinsics.warp import LANES
from compiler.lowering.loop_to_low.context import BlockThreads, Context
from compiler.lowering.loop_to_low.function import allocated, arguments, entry, low_type, prepared
from compiler.lowering.loop_to_low.literals import Globals
from compiler.lowering.loop_to_low.nests import emit
from compiler.lowering.loop_to_low.private import parts
from compiler.lowering.loop_to_low.scopes import INDEX, Scope, Scopes
from compiler.program.names import fresh
from compiler.program.tree import Alloc, Buffer, Loop, Program, blocks_in, loops_in, walk
from compiler.program.tree import Block as Computed
from compiler.program.write import replace_body
from compiler.support.errors import LoweringError
from compiler.types.policies import Policy

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Shape:
    """How many blocks a kernel has, and how many threads each of them."""

    grid: Extents
    block: Extents


def lower_function(function: FuncOp, policy: Policy) -> KernelsOp:
    """Replace the body of a loop function by launches, and give the kernels that they launch."""
    lowering = _Lowering(prepared(function), policy)
    kernels = lowering.run()
    replace_body(function, Region(lowering.host))
    return kernels


def shape_of(program: Program, kernel: Loop | Computed) -> Shape:
    """The shape of a kernel: along each dimension the most that one of its loops has.

    Raises LoweringError where block loops stand inside other loops, blocks side by side are spread over different
    threads, or there are loops for other targets.
    """
    extents = dict.fromkeys((*BLOCKS, *THREADS), 1)
    loops = loops_in(kernel)
    for loop in loops:
        if loop.kind in extents:
            extents[loop.kind] = max(extents[loop.kind], loop.extent)
        elif loop.kind == "parallel":
            raise LoweringError(f"loop '{loop.label}' is {loop.kind}, which a kernel does not have")
    for loop in loops:
        around = program.enclosing(loop.number)
        if loop.kind in BLOCKS:
            _check_blocks(loop, around)
        elif loop.kind == "tensorized":
            _check_warp(loop, around, extents["thread_x"])
        elif loop.kind in THREADS and not any(outer.kind in THREADS for outer in around):
            _check_stage(program, loop)
    x, y, z, tx, ty, tz = extents.values()
    return Shape((x, y, z), (tx, ty, tz))


def _check_blocks(loop: Loop, around: Sequence[Loop]) -> None:
    outer = next((each for each in around if each.kind not in BLOCKS), None)
    if outer is not None:
        said = f"is bound to {loop.kind} inside the loop '{outer.label}', which each block runs"
        raise LoweringError(f"loop '{loop.label}' {said}")


def _check_warp(loop: Loop, around: Sequence[Loop], threads: int) -> None:
    """The threads of a warp that runs a nest together are all threads along x: no loop may be bound to them."""
    outer = next((each for each in around if each.kind == "thread_x"), None)
    if outer is not None:
        raise LoweringError(f"loop '{loop.label}' is run by a warp, inside the loop '{outer.label}' over threads")
    if threads != LANES:
        raise LoweringError(f"loop '{loop.label}' is run by a warp, and there are {threads} threads along x")


def _check_stage(program: Program, loop: Loop) -> None:
    """Blocks inside the same thread loops must be spread over the same threads: a stage has no barrier inside."""
    shared = [n.buffer.name for n in walk((loop,)) if isinstance(n, Alloc) and n.buffer.scope == "shared"]
    if shared:
        raise LoweringError(
            f"the shared buffer '{shared[0]}' lives in one iteration of loop '{loop.label}': it is one thread's; "
            "compute it at a loop outside those over threads, which reorder puts inside and bind marks last"
        )
    kinds = {block.label: _threads_of(program, block) for block in blocks_in(loop)}
    if not kinds:
        raise LoweringError(f"loop '{loop.label}' is bound to {loop.kind}, and no block stands in it")
    first, *later = kinds
    different = next((label for label in later if kinds[label] != kinds[first]), None)
    if different is not None:
        raise LoweringError(
            f"loop '{loop.label}' has blocks '{first}' and '{different}' in it, and they are not on the same threads"
        )


def _threads_of(program: Program, block: Computed) -> set[str]:
    """The thread dimensions that a block is spread over."""
    kinds = {loop.kind for loop in program.enclosing(block.label)}
    return kinds & set(THREADS) | ({THREADS[0]} if "tensorized" in kinds else set())


class _Lowering:
    """The state of lowering one function."""

    def __init__(self, program: Program, policy: Policy) -> None:
        self.program, self.policy = program, policy
        self.parts = parts(program)
        self.host = entry(program.arguments)
        self.buffers = arguments(program.arguments, self.host)
        self.kernels: dict[str, Operation] = {}
        self.module = f"{program.name}_kernels"
        self.constants = Globals(f"{program.name}_constant", ())

    def run(self) -> KernelsOp:
        """Lower every nest, and make the host function launch the kernels in their order."""
        for node in self.program.body:
            if isinstance(node, Alloc):
                alloc = allocated(node.buffer, low_type(node.buffer))
                self.buffers[node.buffer.name] = alloc.memref
                self.host.add_op(alloc)
            else:
                self.host.add_ops(self._launch(node))
        self.host.add_op(ReturnOp())
        ops = [*self.constants.declarations(), *self.kernels.values()]
        return KernelsOp(StringAttr(self.module), Region(Block(ops)))  # type: ignore[arg-type]

    def _launch(self, node: Loop | Computed) -> list[Operation]:
        shape, inside = shape_of(self.program, node), blocks_in(node)
        touched = (buffer for block in inside for buffer in _touched(block))
        used = list(dict.fromkeys(buffer for buffer in touched if buffer in self.buffers))
        title = _word(inside[-1].label if inside else "nothing")
        name = fresh(f"{_word(self.program.name)}_{title}", self.constants.taken, "_")
        self.constants.taken.add(name)
        self.kernels[name] = self._kernel(name, node, shape, [self.program.buffers[buffer] for buffer in used])
        sizes = [ConstantOp(IntegerAttr(n, INDEX)) for n in (*shape.grid, *shape.block)]
        symbol = SymbolRefAttr(self.module, [name])
        operands = [self.buffers[buffer] for buffer in used]
        launch = LaunchFuncOp(symbol, sizes[:3], sizes[3:], kernelOperands=operands, asyncDependencies=[])
        return [*sizes, launch]

    def _kernel(self, name: str, node: Loop | Computed, shape: Shape, used: Sequence[Buffer]) -> KernelOp:
        """A nest as a kernel on the buffers that it uses."""
        body = entry(used)
        scopes = Scopes([Scope(body)], ranges=dict(self.program.ranges))
        context = Context(self.program, scopes, self.policy, arguments(used, body))
        read = {buffer for block in blocks_in(node) for buffer in block.sources}
        literals = [literal for literal in self.program.literals if literal.buffer.name in read]
        context.add_constants(self.constants.get(literals, scopes))
        context.threads = self._threads(context, node, shape)
        emit(context, node)
        body.add_op(KernelReturnOp([]))
        types = [value.type for value in body.args]
        made = KernelOp(name, (types, []), Region(body), True, shape.block, shape.grid)
        made.attributes["gpu.kernel"] = UnitAttr()  # where upstream looks for it
        return made

    def _threads(self, context: Context, node: Loop | Computed, shape: Shape) -> BlockThreads:
        """The hardware indices along which a kernel has more than one thread, and the kinds that its loops are bound
        to."""
        inside = loops_in(node)
        bound = {loop.kind for loop in inside}
        extents = dict(zip((*BLOCKS, *THREADS), (*shape.grid, *shape.block), strict=True))
        ids: dict[str, SSAValue] = {}
        variables: dict[str, int] = {}
        for number, (kind, extent) in enumerate(extents.items(), self.program.fresh_number()):
            if kind not in bound:
                continue
            dimension = DimensionAttr(DimensionEnum(kind[-1]))
            value = context.scopes.add(BlockIdOp(dimension) if kind in BLOCKS else ThreadIdOp(dimension))
            value.name_hint = f"{'b' if kind in BLOCKS else 't'}{kind[-1]}"
            ids[kind], variables[kind] = value, number
            context.scopes.bound[number], context.scopes.home[number] = value, 0
            context.scopes.ranges[number] = (0, extent - 1)
        numbers = {number for number, loop in self.program.loops.items() if loop.kind in THREADS}
        waits = self._barriers(node) if isinstance(node, Loop) else ()
        copies_wait = any(ASYNC in dict(loop.attributes) for loop in inside)
        return BlockThreads(ids, extents, variables, self.parts, numbers, waits, copies_wait=copies_wait)

    def _barriers(self, kernel: Loop) -> Collection[object]:
        """The nodes before which the threads of a block wait for each other."""
        torn = unordered(self.program, kernel)
        if torn is not None:
            both = f"'{torn.first.block.label}' and '{torn.second.block.label}'"
            raise LoweringError(f"blocks {both} stand inside the same thread loops, where nobody waits: {torn}")
        return barriers(self.program, kernel)


def _touched(block: Computed) -> list[str]:
    """The buffers that a block reads, its table last, and writes."""
    return [*block.sources, *(access.buffer for access in block.writes)]


def _word(text: str) -> str:
    """A text as a name that every target's language has."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)
