"""Keep values that a loop passes to its next iteration through memory in loop-carried values.

Innermost loops first, so that an accumulator climbs out of all the loops that do not index it. Different buffers
never overlap (the kernel's arguments and temporaries are disjoint), so only accesses to the same one are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.rewriter import Rewriter

from compiler.analysis.accesses import LowAccess, access
from compiler.analysis.index_forms import Forms, Ranges
from compiler.analysis.overlap import Overlaps
from compiler.dialects.levels import require
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.walk import ops_in
from compiler.passes.touches import accessed_buffers


@dataclass(frozen=True)
class PromoteBuffersPass(ModulePass):
    """Promote accumulators from memory to loop-carried values, forward stores to loads, drop dead buffers.

        store 0, C[m]; for k { x = load C[m]; store x + a, C[m] }
      ->
        r = for k iter_args(x = 0) { yield x + a }; store r, C[m]

    An element is promoted out of a loop if its indices do not change there, every other access to its buffer in
    the loop is at another element, and it is accessed before the loop or the loop surely runs.
    """

    name = "promote-buffers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        accesses = _AccessCache()
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)][::-1]:
            _promote_all(loop, accesses)
        for block in [b for o in ops_in(op) for r in o.regions for b in r.blocks]:
            _forward_stores(block, accesses)
        _drop_unread_buffers(op)


class _AccessCache:
    """The accesses of ops, found again as long as their operands are the same."""

    def __init__(self) -> None:
        self._found: dict[Operation, tuple[tuple[SSAValue, ...], LowAccess | None]] = {}

    def of(self, op: Operation) -> LowAccess | None:
        """The access that an op is; most ops are arithmetic, which their names tell sooner than their classes."""
        if not op.name.startswith(("memref.", "vector.")):
            return None
        operands, found = tuple(op.operands), self._found.get(op)
        if found is None or found[0] != operands:
            found = self._found[op] = operands, access(op)
        return found[1]


def _promote_all(loop: scf.ForOp, accesses: _AccessCache) -> None:
    groups = [group for group in _groups(loop, accesses) if _is_fixed(loop, group)]
    if groups:
        body = _LoopAccesses(loop, {g[0].buffer for g in groups}, accesses)
        promoted = [g for g in groups if _is_promotable(body, g)]
        if promoted:
            _rebuild(loop, promoted)


class _LoopAccesses:
    """The accesses of a loop to some buffers, inner loops included, and the places that were accessed before it."""

    def __init__(self, loop: scf.ForOp, buffers: set[SSAValue], accesses: _AccessCache) -> None:
        self.loop = loop
        self._accesses = accesses
        forms = Forms()
        self._inside = {buffer: Overlaps(forms) for buffer in buffers}
        self._otherwise: set[SSAValue] = set()
        for op in ops_in(loop):
            accessed = accesses.of(op)
            if accessed is None:
                self._otherwise |= {v for v in op.operands if v in buffers and not isinstance(op, PrefetchOp)}
            elif accessed.buffer in buffers:
                self._inside[accessed.buffer].add(accessed)

    def only(self, group: list[LowAccess]) -> bool:
        """Whether nothing else in the loop may touch the place of a group."""
        first, members = group[0], {a.op for a in group}
        if first.buffer in self._otherwise:
            return False
        return all(access_near.op in members for access_near in self._inside[first.buffer].meeting(first))

    @cached_property
    def surely_runs(self) -> bool:
        """Whether the loop has an iteration whatever its bounds are."""
        return Ranges().surely_runs(self.loop)

    @cached_property
    def before(self) -> set[object]:
        """The places that were surely accessed before the loop."""
        return {earlier.place for earlier in _accesses_before(self.loop, self._accesses)}


def _groups(loop: scf.ForOp, accesses: _AccessCache) -> list[list[LowAccess]]:
    """The accesses directly in the loop's body, grouped by place, where there are loads and stores."""
    places: dict[object, list[LowAccess]] = {}
    for op in loop.body.block.ops:
        accessed = accesses.of(op)
        if accessed is not None:
            places.setdefault(accessed.place, []).append(accessed)
    return [g for g in places.values() if len({a.is_store for a in g}) == 2]


def _is_fixed(loop: scf.ForOp, group: list[LowAccess]) -> bool:
    """Whether the place of a group is the same in each iteration, and no lane outside its mask is used."""
    first = group[0]
    fixed = (*first.indices, first.buffer, *(() if first.mask is None else (first.mask,)))
    return not any(loop.is_ancestor(value.owner) for value in fixed) and all(map(_uses_masked_lanes_only, group))


def _is_promotable(body: _LoopAccesses, group: list[LowAccess]) -> bool:
    return body.only(group) and (body.surely_runs or group[0].place in body.before)


def _uses_masked_lanes_only(load: LowAccess) -> bool:
    """Whether the lanes of a masked load outside its mask are dead: only stores that drop those lanes use it."""
    if load.mask is None or load.is_store:
        return True
    pending: list[SSAValue] = [load.op.results[0]]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            if not _stores_masked(use.operation, use.index, load.mask):
                onwards = _elementwise_results(use.operation, use.index)
                if onwards is None:
                    return False
                pending.extend(onwards)
    return True


def _elementwise_results(user: Operation, operand: int) -> Sequence[SSAValue] | None:
    """The values whose lanes are each computed from the same lane of an operand, or are it; None for other uses."""
    if user.name.startswith(("arith.", "math.")) or isinstance(user, vector.FMAOp):
        return user.results
    loop, first = (user.parent_op(), 0) if isinstance(user, scf.YieldOp) else (user, 3)
    if not isinstance(loop, scf.ForOp) or operand < first:
        return None
    return loop.results[operand - first], loop.body.block.args[operand - first + 1]


def _stores_masked(user: Operation, operand: int, mask: SSAValue) -> bool:
    """Whether an op uses an operand only as the value that it stores under a mask."""
    store = access(user)
    return store is not None and store.is_store and store.mask is mask and operand == len(user.operands) - 1


def _accesses_before(op: Operation, accesses: _AccessCache) -> Iterator[LowAccess]:
    """The accesses that surely ran before an op: earlier in its block or in a surrounding one.

    Not before a parallel loop around it: what other iterations may write meanwhile is not loaded and stored back.
    """
    place: Operation | None = op
    while place is not None and not isinstance(place, scf.ParallelOp):
        earlier = place.prev_op
        while earlier is not None:
            accessed = accesses.of(earlier)
            if accessed is not None:
                yield accessed
            earlier = earlier.prev_op
        place = place.parent_op()


def _rebuild(loop: scf.ForOp, groups: list[list[LowAccess]]) -> None:
    """The loop with one loop-carried value more for each group: loaded before it, stored after it."""
    rewriter, body = PatternRewriter(loop), loop.body.block
    initial, carried = [], []
    for group in groups:
        load = next(a.op for a in group if not a.is_store)
        carried.append(_carried_value(group, body.insert_arg(group[0].type, len(body.args)), load))
        load.results[0].name_hint = None
        initial.append(rewriter.insert(load).results[0])
    terminator = body.last_op
    assert isinstance(terminator, scf.YieldOp)
    rewriter.replace(terminator, scf.YieldOp(*terminator.operands, *carried))
    new = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *initial], loop.detach_region(loop.body))
    new.attributes |= loop.attributes
    carried_out = rewriter.insert(new).results
    for group, value in zip(groups, carried_out[len(loop.results) :], strict=True):
        stores = [a for a in group if a.is_store]
        rewriter.insert(stores[0].with_stored(value))
        for store in stores:
            Rewriter.erase_op(store.op)
    rewriter.replace(loop, [], carried_out[: len(loop.results)])


def _carried_value(group: list[LowAccess], value: SSAValue, kept: Operation) -> SSAValue:
    """Replace the group's loads by the value that flows through the body; the value at its end. The load that is kept
    is detached, the others are erased."""
    for a in group:
        if a.is_store:
            value = a.stored
            continue
        a.op.results[0].replace_all_uses_with(value)
        if a.op is kept:
            a.op.detach()
        else:
            Rewriter.erase_op(a.op)
    return value


def _forward_stores(block: Block, accesses: _AccessCache) -> None:
    """Within a block: a load takes the value last stored to its place; a store overwritten unread is dropped."""
    forms = Forms()
    live: dict[SSAValue, _LiveStores] = {}
    for op in list(block.ops):
        accessed = accesses.of(op)
        if accessed is None:
            for buffer in accessed_buffers(op, live) if live else ():
                del live[buffer]
            continue
        stores = live.get(accessed.buffer)
        if accessed.is_store:
            if stores is None:
                stores = live[accessed.buffer] = _LiveStores(forms)
            stores.overwrite(accessed)
        elif stores is not None:
            source = stores.at.get(accessed.place)
            if source is not None and _uses_masked_lanes_only(accessed):
                op.results[0].replace_all_uses_with(source.stored)
                block.erase_op(op)
            else:
                stores.latest = op


class _LiveStores:
    """The stores to one buffer that hold its current content, by their places, and the latest op that touched it."""

    def __init__(self, forms: Forms) -> None:
        self.at: dict[object, LowAccess] = {}
        self.latest: Operation | None = None
        self._overlaps = Overlaps(forms)

    def overwrite(self, store: LowAccess) -> None:
        """Take in a store; one to the same place that nothing has followed is erased."""
        old = self.at.get(store.place)
        dead = old is not None and self.latest is old.op
        for overlapping in self._overlaps.meeting(store):
            self._overlaps.remove(overlapping)
            del self.at[overlapping.place]
        if dead and old is not None:
            Rewriter.erase_op(old.op)
        self._overlaps.add(store)
        self.at[store.place] = store
        self.latest = store.op


def _drop_unread_buffers(module: ModuleOp) -> None:
    for op in ops_in(module):
        if isinstance(op, memref.AllocOp):
            users = [use.operation for use in op.memref.uses]
            if all(isinstance(user, PrefetchOp) or _only_stores(user, op.memref) for user in users):
                for user in users:
                    Rewriter.erase_op(user)
                Rewriter.erase_op(op)


def _only_stores(user: Operation, buffer: SSAValue) -> bool:
    accessed = access(user)
    return accessed is not None and accessed.is_store and accessed.buffer is buffer
