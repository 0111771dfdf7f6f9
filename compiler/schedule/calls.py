"""Which primitive an op of a script calls: one line each, and the choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.analysis.legal import Step
from compiler.dialects.sched import choice, handle, kind, layout, nest, pipelining, placement, reduction, staging
from compiler.dialects.sched.base import SchedOp
from compiler.errors import ScheduleError
from compiler.program.tree import Program, key_of
from compiler.schedule.plan import Plan, block_place, refuse
from compiler.schedule.primitives import cache, inline, memory, merge, pipeline, place, reduce, split
from compiler.schedule.primitives import kind as kinds
from compiler.schedule.primitives import nest as nests
from compiler.schedule.primitives import pad as padding
from compiler.schedule.sample import categorical, location, multiple, perfect_tile, product
from compiler.schedule.state import INLINE, ROOT, State

Call = Callable[[State, Any], Plan]


def _unchanged(state: State, **given: Any) -> Plan:
    return Plan(Step(state.program), **given)


def _get_block(state: State, op: handle.GetBlockOp) -> Plan:
    label = op.label.data
    if label not in state.program.blocks:
        known = ", ".join(state.program.blocks)
        refuse("get_block", block_place(label), f"there is none (there are {known})")
    return _unchanged(state, blocks=(label,))


def _get_loops(state: State, op: handle.GetLoopsOp) -> Plan:
    label = state.block(op, op.block)
    loops = [key_of(loop) for loop in state.program.enclosing(label)]
    if len(loops) != len(op.loops):
        refuse("get_loops", block_place(label), f"it has {len(loops)} loops, not {len(op.loops)}")
    return _unchanged(state, loops=tuple(loops))


def neighbours(program: Program, label: str, producers: bool) -> list[str]:
    """The blocks that write what a block reads, or read what it writes, in the order of the program."""
    block = program.blocks[label]
    touched = block.sources if producers else [a.buffer for a in block.writes]
    others = program.writers if producers else program.readers
    found = {b.label for name in touched for b in others[name]} - {label}
    return [name for name in program.blocks if name in found]


def _neighbours(state: State, op: Any) -> Plan:
    producers = isinstance(op, handle.GetProducersOp)
    label = state.block(op, op.block)
    found = neighbours(state.program, label, producers)
    if len(found) != len(op.results):
        what = "producers" if producers else "consumers"
        refuse(f"get_{what}", block_place(label), f"it has {len(found)} {what}, not {len(op.results)}")
    return _unchanged(state, blocks=tuple(found))


def _split(state: State, op: nest.SplitOp) -> Plan:
    factors = [None if size == -1 else state.size(op, size) for size in op.sizes]
    return split.split(state.program, state.loop(op, op.loop), factors, op.tail.data if op.tail else "guard")


def _compute_at(state: State, op: placement.ComputeAtOp) -> Plan:
    label, loop = state.block(op, op.block), state.loop(op, op.loop, special=True)
    if loop == ROOT:
        return _unchanged(state)
    return inline.inline(state.program, label) if loop == INLINE else place.compute_at(state.program, label, loop)


def _reverse_compute_at(state: State, op: placement.ReverseComputeAtOp) -> Plan:
    label, loop = state.block(op, op.block), state.loop(op, op.loop, special=True)
    if loop == ROOT:
        return _unchanged(state)
    if loop == INLINE:
        return inline.reverse_inline(state.program, label)
    return place.reverse_compute_at(state.program, label, loop)


def _lift_alloc(state: State, op: staging.LiftAllocOp) -> Plan:
    loop = state.loop(op, op.loop) if op.loop is not None else None
    return memory.lift_alloc(state.program, op.buffer.data, loop)


def _pack(state: State, op: layout.PackOp) -> Plan:
    tiles = [state.size(op, size) for size in op.sizes]
    order = [int(t) for t in op.order.get_values()] if op.order is not None else []
    return memory.pack(state.program, state.block(op, op.block), op.buffer.data, tiles, order)


def _transform_layout(state: State, op: layout.TransformLayoutOp) -> Plan:
    label, buffer = state.block(op, op.block), op.buffer.data
    if op.layout is not None:
        return memory.transform_layout(state.program, label, buffer, op.layout.data)
    tiles = [state.size(op, size) for size in op.sizes]
    order = [int(t) for t in op.order.get_values()] if op.order is not None else []
    return memory.transform_layout(state.program, label, buffer, memory.Blocks(tiles, order))


def _prefetch(state: State, op: pipelining.PrefetchOp) -> Plan:
    over = state.loop(op, op.over) if op.over is not None else None
    return pipeline.prefetch(state.program, state.loop(op, op.loop), op.buffer.data, op.distance.value.data, over)


def _auto(state: State, op: choice.AutoOp) -> Plan:
    reason = "it stands for choices that a search derives; tune the script as a template"
    raise ScheduleError(reason, "auto", block_place(state.block(op, op.block)))


CALLS: dict[type[SchedOp], Call] = {
    handle.GetBlockOp: _get_block,
    handle.GetLoopsOp: _get_loops,
    handle.GetProducersOp: _neighbours,
    handle.GetConsumersOp: _neighbours,
    nest.SplitOp: _split,
    nest.PartitionOp: lambda s, op: split.partition(s.program, s.loop(op, op.loop), op.position.value.data),
    nest.FuseOp: lambda s, op: nests.fuse(s.program, [s.loop(op, v) for v in op.loops]),
    nest.ReorderOp: lambda s, op: nests.reorder(s.program, [s.loop(op, v) for v in op.loops]),
    nest.MergeOp: lambda s, op: merge.merge(
        s.program, s.loop(op, op.first), s.loop(op, op.second), op.shift.value.data if op.shift else 0
    ),
    nest.DistributeOp: lambda s, op: merge.distribute(s.program, s.loop(op, op.loop), s.block(op, op.block)),
    kind.UnrollOp: lambda s, op: kinds.unroll(s.program, s.loop(op, op.loop)),
    kind.VectorizeOp: lambda s, op: kinds.vectorize(s.program, s.loop(op, op.loop)),
    kind.ParallelOp: lambda s, op: kinds.parallel(s.program, s.loop(op, op.loop)),
    kind.BindOp: lambda s, op: kinds.bind(s.program, s.loop(op, op.loop), op.thread.data),
    kind.TensorizeOp: lambda s, op: kinds.tensorize(s.program, s.loop(op, op.loop), op.intrinsic.data),
    kind.AnnotateOp: lambda s, op: kinds.annotate(s.program, s.loop(op, op.loop), op.key.data, op.value),
    placement.ComputeAtOp: _compute_at,
    placement.ReverseComputeAtOp: _reverse_compute_at,
    placement.InlineOp: lambda s, op: inline.inline(s.program, s.block(op, op.block)),
    placement.ReverseInlineOp: lambda s, op: inline.reverse_inline(s.program, s.block(op, op.block)),
    staging.CacheReadOp: lambda s, op: cache.cache_read(
        s.program, s.block(op, op.block), op.buffer.data, op.scope.data
    ),
    staging.CacheWriteOp: lambda s, op: cache.cache_write(s.program, s.block(op, op.block), op.scope.data),
    staging.StageOp: lambda s, op: cache.stage(s.program, s.loop(op, op.loop), op.buffer.data, op.scope.data),
    staging.LiftAllocOp: _lift_alloc,
    staging.SetScopeOp: lambda s, op: memory.set_scope(s.program, s.block(op, op.block), op.scope.data),
    layout.TransformLayoutOp: _transform_layout,
    layout.PackOp: _pack,
    layout.PadOp: lambda s, op: padding.pad(s.program, s.block(op, op.block), op.buffer.data),
    layout.StorageAlignOp: lambda s, op: memory.storage_align(
        s.program, s.block(op, op.block), op.dim.value.data, op.factor.value.data, op.offset.value.data
    ),
    layout.SwizzleOp: lambda s, op: memory.swizzle(s.program, s.block(op, op.block), op.width.value.data),
    pipelining.PrefetchOp: _prefetch,
    pipelining.DoubleBufferOp: lambda s, op: pipeline.double_buffer(s.program, s.block(op, op.block)),
    pipelining.SoftwarePipelineOp: lambda s, op: pipeline.software_pipeline(
        s.program, s.loop(op, op.loop), [int(v) for v in op.stages.get_values()]
    ),
    reduction.DecomposeReductionOp: lambda s, op: reduce.decompose_reduction(
        s.program, s.block(op, op.block), s.loop(op, op.loop)
    ),
    reduction.RfactorOp: lambda s, op: reduce.rfactor(s.program, s.block(op, op.block), s.loop(op, op.loop)),
    choice.SamplePerfectTileOp: perfect_tile,
    choice.SampleCategoricalOp: categorical,
    choice.MultipleOp: multiple,
    choice.ProductOp: product,
    choice.SampleLocationOp: location,
    choice.AutoOp: _auto,
}
"""What each op of a script does."""
