"""Kernels: each nest at the top of a function, its block and thread loops as hardware indices."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    FunctionType,
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

from compiler.analysis.barriers import BLOCKS, THREADS, barriers, unordered
from compiler.dialects import loop
from compiler.errors import LoweringError
from compiler.intrinsics.warp import LANES
from compiler.lowering.loop_to_gpu.private import parts
from compiler.lowering.loop_to_low.context import Context, Threads
from compiler.lowering.loop_to_low.nests import buffer_names, emit, signless
from compiler.lowering.loop_to_low.scopes import INDEX, Scope, Scopes
from compiler.lowering.loop_to_low.tensor import run_whole
from compiler.lowering.loop_to_low.threads import BARRIER, has_copies
from compiler.policies import Policy
from compiler.program.read import read
from compiler.program.tree import Alloc, Loop, Node, Program, walk
from compiler.program.tree import Block as Computed

Extents = tuple[int, int, int]


@dataclass(frozen=True)
class Shape:
    """How many blocks a kernel has, and how many threads each of them."""

    grid: Extents
    block: Extents


def lower_function(function: FuncOp, policy: Policy) -> KernelsOp:
    """Replace the body of a loop function by launches, and give the kernels that they launch."""
    run_whole(function)
    program = read(function)
    lowering = _Lowering(function, program, policy)
    return lowering.run()


def shape_of(kernel: Node) -> Shape:
    """The shape of a kernel: along each dimension the most that one of its loops has.

    Raises LoweringError where block loops stand inside other loops, blocks side by side are spread over different
    threads, or there are loops for other targets.
    """
    extents = dict.fromkeys((*BLOCKS, *THREADS), 1)
    for node in walk((kernel,)):
        if isinstance(node, Loop) and node.kind in extents:
            extents[node.kind] = max(extents[node.kind], node.extent)
        elif isinstance(node, Loop) and node.kind == "parallel":
            raise LoweringError(f"loop '{node.label}' is {node.kind}, which a kernel does not have")
    _check_nesting((kernel,), ())
    _check_warps(kernel, extents["thread_x"])
    _check_stages((kernel,))
    x, y, z, tx, ty, tz = extents.values()
    return Shape((x, y, z), (tx, ty, tz))


def _check_nesting(nodes: Sequence[Node], around: tuple[Loop, ...]) -> None:
    for node in nodes:
        if not isinstance(node, Loop):
            continue
        outer = next((loop for loop in around if loop.kind not in BLOCKS), None)
        if node.kind in BLOCKS and outer is not None:
            raise LoweringError(
                f"loop '{node.label}' is bound to {node.kind} inside the loop '{outer.label}', which each block runs"
            )
        _check_nesting(node.body, (*around, node))


def _check_warps(kernel: Node, threads: int) -> None:
    """A warp that runs a nest together is what threads there are along x: none of them is named by a loop."""
    for node in walk((kernel,)):
        if not isinstance(node, Loop):
            continue
        inside = [loop for loop in walk(node.body) if isinstance(loop, Loop) and loop.kind == "tensorized"]
        if inside and node.kind == "thread_x":
            raise LoweringError(
                f"loop '{inside[0].label}' is run by a warp, inside the loop '{node.label}' over threads"
            )
        if node.kind == "tensorized" and threads != LANES:
            raise LoweringError(f"loop '{node.label}' is run by a warp, and there are {threads} threads along x")


def _check_stages(nodes: Sequence[Node]) -> None:
    """What runs inside thread loops together is spread over the same threads: nobody would wait in between."""
    for node in nodes:
        if not isinstance(node, Loop):
            continue
        if node.kind not in THREADS:
            _check_stages(node.body)
            continue
        shared = [n.buffer.name for n in walk((node,)) if isinstance(n, Alloc) and n.buffer.scope == "shared"]
        if shared:
            raise LoweringError(
                f"the shared buffer '{shared[0]}' lives in one iteration of loop '{node.label}': it is one thread's"
            )
        kinds = {block.label: around for block, around in _spread((node,), ())}
        if not kinds:
            raise LoweringError(f"loop '{node.label}' is bound to {node.kind}, and no block stands in it")
        first, *others = kinds
        other = next((label for label in others if kinds[label] != kinds[first]), None)
        if other is not None:
            raise LoweringError(
                f"loop '{node.label}' has blocks '{first}' and '{other}' in it, and they are not on the same threads"
            )


def _spread(nodes: Sequence[Node], around: tuple[str, ...]) -> Iterator[tuple[Computed, tuple[str, ...]]]:
    """The blocks inside nodes, each with the thread dimensions that it is spread over."""
    for node in nodes:
        if isinstance(node, Loop):
            kind = "thread_x" if node.kind == "tensorized" else node.kind
            inside = tuple({*around, kind}) if kind in THREADS else around
            yield from _spread(node.body, tuple(sorted(inside)))
        elif isinstance(node, Computed):
            yield node, around


class _Lowering:
    """The state of lowering one function."""

    def __init__(self, function: FuncOp, program: Program, policy: Policy) -> None:
        self.function, self.program, self.policy = function, program, policy
        self.parts = parts(program)
        self.names = buffer_names(function.body.block)
        self.loops = [op for op in function.walk() if isinstance(op, loop.ForOp)]
        self.kernels: list[Operation] = []
        self.module = f"{function.sym_name.data}_kernels"

    def run(self) -> KernelsOp:
        """Lower every nest, and make the host function launch the kernels in their order."""
        old = self.function.body.block
        host = Block(arg_types=[signless(argument.type) for argument in old.args])
        buffers: dict[SSAValue, SSAValue] = {}
        for before, after in zip(old.args, host.args, strict=True):
            after.name_hint = before.name_hint
            buffers[before] = after
        for op, node in zip([o for o in old.ops if not isinstance(o, ReturnOp)], self.program.body, strict=True):
            if isinstance(op, loop.AllocOp):
                alloc = memref.AllocOp([], [], signless(op.buffer.type))
                alloc.memref.name_hint = op.buffer.name_hint
                buffers[op.buffer] = alloc.memref
                host.add_op(alloc)
            else:
                host.add_ops(self._launch(op, node, buffers))
        host.add_op(ReturnOp())
        self.function.detach_region(self.function.body)
        self.function.add_region(Region(host))
        self.function.properties["function_type"] = FunctionType.from_lists([a.type for a in host.args], [])
        return KernelsOp(StringAttr(self.module), Region(Block(self.kernels)))  # type: ignore[arg-type]

    def _launch(self, op: Operation, node: Node, buffers: dict[SSAValue, SSAValue]) -> list[Operation]:
        shape = shape_of(node)
        used = list(dict.fromkeys(value for value in _operands(op) if value in buffers))
        taken = {kernel.sym_name.data for kernel in self.kernels}  # type: ignore[attr-defined]
        name = _distinct(f"{_word(self.function.sym_name.data)}_{_title(op)}", taken)
        self.kernels.append(self._kernel(name, op, node, shape, used))
        sizes = [ConstantOp(IntegerAttr(n, INDEX)) for n in (*shape.grid, *shape.block)]
        symbol = SymbolRefAttr(self.module, [name])
        launch = LaunchFuncOp(
            symbol, sizes[:3], sizes[3:], kernelOperands=[buffers[v] for v in used], asyncDependencies=[]
        )
        return [*sizes, launch]

    def _kernel(self, name: str, op: Operation, node: Node, shape: Shape, used: Sequence[SSAValue]) -> KernelOp:
        """A nest as a kernel on the buffers that it uses."""
        body = Block(arg_types=[signless(value.type) for value in used])
        context = Context(Scopes([Scope(body)]), self.policy, names=self.names)
        for before, after in zip(used, body.args, strict=True):
            after.name_hint = before.name_hint
            context.buffers[before] = after
        for number, each in enumerate(self.loops):
            context.variables[each.iv] = number
            context.scopes.ranges[number] = (0, each.size - 1)
        context.threads = self._threads(context, node, shape)
        context.threads.copies_wait = has_copies(op)
        if isinstance(node, Loop):
            torn = unordered(self.program, node)
            if torn is not None:
                both = f"'{torn.first.block.label}' and '{torn.second.block.label}'"
                raise LoweringError(f"blocks {both} stand inside the same thread loops, where nobody waits: {torn}")
            for key in barriers(self.program, node):
                self._marked(key, op)
        emit(context, op)
        body.add_op(KernelReturnOp([]))
        types = [value.type for value in body.args]
        made = KernelOp(name, (types, []), Region(body), True, shape.block, shape.grid)
        made.attributes["gpu.kernel"] = UnitAttr()  # where upstream looks for it
        return made

    def _threads(self, context: Context, node: Node, shape: Shape) -> Threads:
        """The hardware indices along which a kernel has more than one, and those that its loops are bound to."""
        bound = {inner.kind for inner in walk((node,)) if isinstance(inner, Loop)}
        extents = dict(zip((*BLOCKS, *THREADS), (*shape.grid, *shape.block), strict=True))
        ids: dict[str, SSAValue] = {}
        variables: dict[str, int] = {}
        for position, (kind, extent) in enumerate(extents.items()):
            if kind not in bound:
                continue
            dimension = DimensionAttr(DimensionEnum(kind[-1]))
            value = context.scopes.add(BlockIdOp(dimension) if kind in BLOCKS else ThreadIdOp(dimension))
            value.name_hint = f"{'b' if kind in BLOCKS else 't'}{kind[-1]}"
            number = len(self.loops) + position
            ids[kind], variables[kind] = value, number
            context.scopes.bound[number], context.scopes.home[number] = value, 0
            context.scopes.ranges[number] = (0, extent - 1)
        named = {name: value for value, name in self.names.items()}
        numbers = {n for n, each in enumerate(self.loops) if each.loop_kind in THREADS}
        own = {named[name]: part for name, part in self.parts.items()}
        return Threads(ids, extents, variables, own, numbers)

    def _marked(self, key: int | str | tuple[str], op: Operation) -> None:
        """Say at a node of a kernel that threads wait before it."""
        if isinstance(key, int):
            self.loops[key].attributes[BARRIER] = UnitAttr()
            return
        labels = {block.label.data: block for block in op.walk() if isinstance(block, loop.Placed)}
        labels[str(key)].attributes[BARRIER] = UnitAttr()


def _operands(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        if isinstance(inner, loop.Placed):
            yield from inner.operands


def _title(op: Operation) -> str:
    """What a kernel is called after: its last block."""
    blocks = [inner for inner in op.walk() if isinstance(inner, loop.Placed)]
    return _word(blocks[-1].label.data if blocks else "nothing")


def _distinct(name: str, taken: Collection[str]) -> str:
    """A name that none of the others is, numbered where it is."""
    found, number = name, 0
    while found in taken:
        number += 1
        found = f"{name}_{number}"
    return found


def _word(text: str) -> str:
    """A text as a name that every target's language has."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)
