"""Kernels: each nest at the top of a function; block and thread loops become hardware indices."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects.arith import AddiOp, ConstantOp, MuliOp
from xdsl.dialects.builtin import IntegerAttr, StringAttr, SymbolRefAttr, UnitAttr, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.gpu import BlockIdOp, DimensionAttr, DimensionEnum, LaunchFuncOp, ThreadIdOp
from xdsl.dialects.gpu import FuncOp as KernelOp
from xdsl.dialects.gpu import ModuleOp as KernelsOp
from xdsl.dialects.gpu import ReturnOp as KernelReturnOp
from xdsl.dialects.memref import StoreOp
from xdsl.ir import Block, Operation, Region, SSAValue

from compiler.analysis.barriers import ASYNC, FEWEST_BLOCKS, RESIDENT, barriers, unordered
from compiler.analysis.copy_groups import copy_groups
from compiler.analysis.stages import BLOCKS, THREADS, Arrival, arrival_in, replicated
from compiler.dialects.grid import ARRIVALS
from compiler.intrinsics import find
from compiler.intrinsics.warp import LANES, threads_along_x
from compiler.lowering.loop_to_low.context import BlockThreads, Context
from compiler.lowering.loop_to_low.function import allocation, arguments_by_name, entry_block, low_type, prepare_program
from compiler.lowering.loop_to_low.literals import ConstantGlobals
from compiler.lowering.loop_to_low.nests import emit
from compiler.lowering.loop_to_low.private import private_parts
from compiler.lowering.loop_to_low.scopes import INDEX, InsertionScope, Scopes
from compiler.program.names import fresh
from compiler.program.tree import Alloc, Buffer, Loop, Program, blocks_in, key_of, loops_in, walk
from compiler.program.tree import Block as Computed
from compiler.program.write import replace_body
from compiler.support.errors import LoweringError
from compiler.types.policies import Policy

Extents = tuple[int, int, int]
MOST_BEGUN = 1024
"""The most threads of a block that sets counters to zero."""


@dataclass(frozen=True)
class LaunchShape:
    """The number of blocks of a kernel, and of threads in a block, along x, y and z."""

    grid: Extents
    block: Extents


def lower_function(function: FuncOp, policy: Policy) -> KernelsOp:
    """Replace the body of a loop function by launches of kernels; return their gpu.module. Allocations at the top stay
    in the host function. `policy` gives the fastmath flags. Raises LoweringError for a program that kernels cannot run.
    """
    lowering = _KernelLowering(prepare_program(function), policy)
    kernels = lowering.run()
    replace_body(function, Region(lowering.host))
    return kernels


def launch_shape(program: Program, kernel: Loop | Computed) -> LaunchShape:
    """Return a kernel's launch: along each dimension the largest extent of a loop bound to it, 1 without such a loop.
    Raises LoweringError for parallel loops, block loops inside other loops, stages that are empty, allocate shared
    memory or have blocks on different threads, for warp intrinsics in loops over x or with other than 32 threads along
    x, and for blocks that arrive but are not all of their dimensions or share more than global memory."""
    extents = dict.fromkeys((*BLOCKS, *THREADS), 1)
    loops = loops_in(kernel)
    for loop in loops:
        if loop.kind in extents:
            extents[loop.kind] = max(extents[loop.kind], loop.extent)
        elif loop.kind == "parallel":
            raise LoweringError(f"loop '{loop.label}' is {loop.kind}, which a kernel does not have")
    for loop in loops:
        enclosing_loops = program.enclosing(loop.number)
        if loop.kind in BLOCKS:
            _check_blocks(loop, enclosing_loops)
        elif loop.kind == "tensorized":
            _check_warp(loop, enclosing_loops, [extents[kind] for kind in THREADS])
        elif loop.kind in THREADS and not any(outer.kind in THREADS for outer in enclosing_loops):
            _check_stage(program, loop)
    arrival = arrival_in(kernel)
    if arrival is not None:
        _check_arrival(program, loops, arrival)
    x, y, z, tx, ty, tz = extents.values()
    return LaunchShape((x, y, z), (tx, ty, tz))


def _check_arrival(program: Program, loops: Sequence[Loop], arrival: Arrival) -> None:
    """Raise LoweringError unless the blocks that arrive are all of their dimensions, and share global memory alone with
    what stands around their loops."""
    first = arrival.parts[0]
    if arrival.before:
        name = key_of(arrival.before[0])
        label = program.loops[name].label if isinstance(name, int) else name
        reason = f"stands before the loop '{first.label}' over blocks, behind which one block goes on"
        raise LoweringError(f"'{label}' {reason}")
    kinds = {loop.kind: loop for loop in arrival.parts}
    numbers = {loop.number for loop in arrival.parts}
    other = next((loop for loop in loops if loop.kind in kinds and loop.number not in numbers), None)
    if other is not None:
        reason = f"is bound to {other.kind}, as is the loop '{kinds[other.kind].label}' whose blocks arrive"
        raise LoweringError(f"loop '{other.label}' {reason}")
    behind = next((loop for loop in loops_in(*arrival.rest) if loop.kind in BLOCKS), None)
    if behind is not None:
        reason = f"stands behind the loop '{first.label}' over blocks, where one block goes on"
        raise LoweringError(f"loop '{behind.label}' is bound to {behind.kind}, and {reason}")
    inside = {node.buffer.name for node in walk((first,)) if isinstance(node, Alloc)}
    touched = {name for block in blocks_in(first) for name in _buffers_of(block)} - inside
    own = next((name for name in sorted(touched) if program.buffers[name].scope != "global"), None)
    if own is not None:
        reason = f"lives outside of the loop '{first.label}', whose blocks of threads do not share it"
        raise LoweringError(f"the {program.buffers[own].scope} buffer '{own}' {reason}")


def _check_blocks(loop: Loop, enclosing_loops: Sequence[Loop]) -> None:
    outer = next((loop_ for loop_ in enclosing_loops if loop_.kind not in BLOCKS), None)
    if outer is not None:
        reason = f"is bound to {loop.kind} inside the loop '{outer.label}', which each block runs"
        raise LoweringError(f"loop '{loop.label}' {reason}")


def _check_warp(loop: Loop, enclosing_loops: Sequence[Loop], threads: Sequence[int]) -> None:
    """Raise LoweringError unless the threads along x of a block of `threads` are those that run the intrinsic, a warp's
    32 or half of them, none of the enclosing loops is bound to them, and all warps of the block are whole."""
    outer = next((loop_ for loop_ in enclosing_loops if loop_.kind == "thread_x"), None)
    if outer is not None:
        raise LoweringError(f"loop '{loop.label}' is run by a warp, inside the loop '{outer.label}' over threads")
    name = next(around.intrinsic for around in (*enclosing_loops, loop) if around.intrinsic)
    if threads[0] != threads_along_x(find(name)) or prod(threads) % LANES:
        raise LoweringError(
            f"loop '{loop.label}' is run by a warp, and there are {threads[0]} threads along x of {prod(threads)}"
        )


def _check_stage(program: Program, loop: Loop) -> None:
    """Raise LoweringError for a stage without blocks, with a shared buffer inside, or with blocks on different threads:
    a stage has no barrier inside."""
    shared = [n.buffer.name for n in walk((loop,)) if isinstance(n, Alloc) and n.buffer.scope == "shared"]
    if shared:
        raise LoweringError(
            f"the shared buffer '{shared[0]}' lives in one iteration of loop '{loop.label}': it is one thread's; "
            "compute it at a loop outside those over threads, which reorder puts inside and bind marks last"
        )
    threads_of_block = {block.label: _threads_of(program, block) for block in blocks_in(loop)}
    if not threads_of_block:
        raise LoweringError(f"loop '{loop.label}' is bound to {loop.kind}, and no block stands in it")
    first, *later = threads_of_block
    other = next((label for label in later if threads_of_block[label] != threads_of_block[first]), None)
    if other is not None:
        raise LoweringError(
            f"loop '{loop.label}' has blocks '{first}' and '{other}' in it, and they are not on the same threads"
        )


def _threads_of(program: Program, block: Computed) -> set[str]:
    kinds = {loop.kind for loop in program.enclosing(block.label)}
    return kinds & set(THREADS) | ({THREADS[0]} if "tensorized" in kinds else set())


class _KernelLowering:
    """The lowering of one function: the body of the host function, `host`, and the kernels that it launches, by name.
    parts: by local buffer, the part that a thread owns. buffers: the host's memrefs, by name in the program. module:
    the name of the gpu.module. constants: the globals of the constants that kernels read."""

    def __init__(self, program: Program, policy: Policy) -> None:
        self.program, self.policy = program, policy
        self.parts = private_parts(program)
        self.host = entry_block(program.arguments)
        self.buffers = arguments_by_name(program.arguments, self.host)
        self.kernels: dict[str, Operation] = {}
        self.module = f"{program.name}_kernels"
        self.constants = ConstantGlobals(f"{program.name}_constant", ())
        self.counters = Buffer("", (0,), i32, "global")
        """The counters of arrivals; without a name if nothing arrives."""

    def run(self) -> KernelsOp:
        """Lower each nest to a kernel, which the host launches in order; return the gpu.module of the kernels.
        If blocks arrive, the first kernel sets their counters to zero."""
        counts = [_counters(self.program, node) for node in self.program.body if not isinstance(node, Alloc)]
        if max(counts, default=0):
            self.host.add_ops(self._begin(max(counts)))
        for node in self.program.body:
            if isinstance(node, Alloc):
                alloc = allocation(node.buffer, low_type(node.buffer))
                self.buffers[node.buffer.name] = alloc.memref
                self.host.add_op(alloc)
            else:
                self.host.add_ops(self._launch(node))
        self.host.add_op(ReturnOp())
        ops = [*self.constants.declarations(), *self.kernels.values()]
        return KernelsOp(StringAttr(self.module), Region(Block(ops)))  # type: ignore[arg-type]

    def _begin(self, count: int) -> list[Operation]:
        """Allocate `count` counters of arrivals, and launch the kernel that sets them to zero."""
        self.counters = Buffer(fresh("arrivals", self.program.buffers, "_"), (count,), i32, "global")
        alloc = allocation(self.counters, low_type(self.counters))
        alloc.attributes[ARRIVALS] = UnitAttr()
        self.buffers[self.counters.name] = alloc.memref
        threads = max(n for n in range(1, min(count, MOST_BEGUN) + 1) if count % n == 0)
        name = _identifier(f"{self.program.name}_begin")
        self.constants.taken.add(name)
        shape = LaunchShape((count // threads, 1, 1), (threads, 1, 1))
        body = entry_block([self.counters])
        block, thread = BlockIdOp(DimensionAttr(DimensionEnum.X)), ThreadIdOp(DimensionAttr(DimensionEnum.X))
        size, zero = ConstantOp(IntegerAttr(threads, INDEX)), ConstantOp(IntegerAttr(0, i32))
        first = MuliOp(block.result, size.result)
        index = AddiOp(first.result, thread.result)
        store = StoreOp.get(zero.result, body.args[0], [index.result])
        body.add_ops([block, thread, size, zero, first, index, store, KernelReturnOp([])])
        block.result.name_hint, thread.result.name_hint = "bx", "tx"
        self.kernels[name] = kernel = _kernel(name, body, shape)
        kernel.attributes[ARRIVALS] = UnitAttr()
        return [alloc, *self._call(name, shape, [alloc.memref])]

    def _launch(self, node: Loop | Computed) -> list[Operation]:
        shape, blocks = launch_shape(self.program, node), blocks_in(node)
        touched_names = (buffer for block in blocks for buffer in _buffers_of(block))
        used_names = list(dict.fromkeys(buffer for buffer in touched_names if buffer in self.buffers))
        title = blocks[-1].label if blocks else "nothing"
        name = fresh(_identifier(f"{self.program.name}_{title}"), self.constants.taken, "_")
        self.constants.taken.add(name)
        used = [self.program.buffers[buffer] for buffer in used_names]
        if _counters(self.program, node):
            used.append(self.counters)
        self.kernels[name] = self._kernel(name, node, shape, used)
        return self._call(name, shape, [self.buffers[buffer.name] for buffer in used])

    def _call(self, name: str, shape: LaunchShape, operands: Sequence[SSAValue]) -> list[Operation]:
        sizes = [ConstantOp(IntegerAttr(n, INDEX)) for n in (*shape.grid, *shape.block)]
        symbol = SymbolRefAttr(self.module, [name])
        launch = LaunchFuncOp(symbol, sizes[:3], sizes[3:], kernelOperands=operands, asyncDependencies=[])
        return [*sizes, launch]

    def _kernel(self, name: str, node: Loop | Computed, shape: LaunchShape, used: Sequence[Buffer]) -> KernelOp:
        body = entry_block(used)
        scopes = Scopes([InsertionScope(body)], ranges=dict(self.program.ranges))
        by_name = arguments_by_name(used, body)
        context = Context(self.program, scopes, self.policy, by_name)
        read_names = {buffer for block in blocks_in(node) for buffer in block.sources}
        literals = [literal for literal in self.program.literals if literal.buffer.name in read_names]
        context.add_constants(self.constants.get(literals, scopes))
        context.threads = self._threads(context, node, shape)
        context.threads.arrival = arrival_in(node)
        context.threads.counters = by_name.get(self.counters.name)
        emit(context, node)
        body.add_op(KernelReturnOp([]))
        kernel = _kernel(name, body, shape)
        resident = dict(node.attributes).get(RESIDENT) if isinstance(node, Loop) else None
        if isinstance(resident, IntegerAttr):
            kernel.attributes[FEWEST_BLOCKS] = resident
        return kernel

    def _threads(self, context: Context, node: Loop | Computed, shape: LaunchShape) -> BlockThreads:
        loops = loops_in(node)
        bound_kinds = {loop.kind for loop in loops}
        extents = dict(zip((*BLOCKS, *THREADS), (*shape.grid, *shape.block), strict=True))
        ids: dict[str, SSAValue] = {}
        variables: dict[str, int] = {}
        for number, (kind, extent) in enumerate(extents.items(), self.program.fresh_number()):
            if kind not in bound_kinds:
                continue
            dimension = DimensionAttr(DimensionEnum(kind[-1]))
            value = context.scopes.add(BlockIdOp(dimension) if kind in BLOCKS else ThreadIdOp(dimension))
            value.name_hint = f"{'b' if kind in BLOCKS else 't'}{kind[-1]}"
            ids[kind], variables[kind] = value, number
            context.scopes.bound[number], context.scopes.home[number] = value, 0
            context.scopes.ranges[number] = (0, extent - 1)
        numbers = {number for number, loop in self.program.loops.items() if loop.kind in THREADS}
        waits = self._barriers(node) if isinstance(node, Loop) else ()
        copies_wait = any(ASYNC in dict(loop.attributes) for loop in loops)
        groups = copy_groups(self.program, node, waits) if copies_wait and isinstance(node, Loop) else None
        alike = replicated(self.program, node)
        return BlockThreads(
            ids, extents, variables, self.parts, numbers, waits, alike, copies_wait=copies_wait, groups=groups
        )

    def _barriers(self, kernel: Loop) -> Collection[object]:
        """Return the nodes before which the threads of a block synchronise. Raises LoweringError for dependent blocks
        inside the same thread loops."""
        conflict = unordered(self.program, kernel)
        if conflict is not None:
            labels = f"'{conflict.first.block.label}' and '{conflict.second.block.label}'"
            raise LoweringError(f"blocks {labels} stand inside the same thread loops, where nobody waits: {conflict}")
        return barriers(self.program, kernel)


def _kernel(name: str, body: Block, shape: LaunchShape) -> KernelOp:
    kernel = KernelOp(name, ([value.type for value in body.args], []), Region(body), True, shape.block, shape.grid)
    kernel.attributes["gpu.kernel"] = UnitAttr()  # where upstream looks for it
    return kernel


def _counters(program: Program, node: Loop | Computed) -> int:
    """Return the number of counters of arrivals of a kernel: the blocks along the other dimensions; 0 without any."""
    arrival = arrival_in(node)
    if arrival is None:
        return 0
    grid, parts = launch_shape(program, node).grid, {loop.kind for loop in arrival.parts}
    return prod(extent for kind, extent in zip(BLOCKS, grid, strict=True) if kind not in parts)


def _buffers_of(block: Computed) -> list[str]:
    return [*block.sources, *(access.buffer for access in block.writes)]


def _identifier(text: str) -> str:
    return re.sub(r"\W|^(?=\d)", "_", text, flags=re.ASCII)
