"""promote-buffers: loop-carried values replace memory between iterations.

Innermost loops come first, so that an accumulator moves out of all loops that do not index it. Different buffers never
overlap (the kernel's arguments and temporaries are disjoint), so only accesses to the same one are compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

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
from compiler.passes.touches import accessed_buffers, leaves_unread


@dataclass(frozen=True)
class PromoteBuffersPass(ModulePass):
    """Promote accumulators from memory to loop-carried values, forward stores to loads, drop dead buffers.

        store 0, C[m]; for k { x = load C[m]; store x + a, C[m] }
      ->
        r = for k iter_args(x = 0) { yield x + a }; store r, C[m]

    An element is promoted out of a loop if its indices are invariant, every other access to its buffer in the loop is
    at another element, and it is accessed before the loop or the loop certainly runs.
    """

    name = "promote-buffers"
    anchor: ClassVar = "func.func"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        require(op, "low", self.name)
        accesses = _AccessCache()
        for loop in [inner for inner in ops_in(op) if isinstance(inner, scf.ForOp)][::-1]:
            _promote_all(loop, accesses)
        for block in [b for o in ops_in(op) for r in o.regions for b in r.blocks]:
            _forward_stores(block, accesses)
        _drop_unread_buffers(op)


class _AccessCache:
    """A cache of the access of each op, valid while the op's operands are the same."""

    def __init__(self) -> None:
        self._cache: dict[Operation, tuple[tuple[SSAValue, ...], LowAccess | None]] = {}

    def of(self, op: Operation) -> LowAccess | None:
        """Return the access of an op, or None if it is no load or store. Most ops are arithmetic: comparing the name is
        cheaper than the class."""
        if not op.name.startswith(("memref.", "vector.")):
            return None
        operands, cached = tuple(op.operands), self._cache.get(op)
        if cached is None or cached[0] != operands:
            cached = self._cache[op] = operands, access(op)
        return cached[1]


def _promote_all(loop: scf.ForOp, accesses: _AccessCache) -> None:
    groups = [group for group in _groups(loop, accesses) if _is_fixed(loop, group)]
    if groups:
        body = _LoopAccesses(loop, {g[0].buffer for g in groups}, accesses)
        promoted = [g for g in groups if _is_promotable(body, g)]
        if promoted:
            _rebuild(loop, promoted)


class _LoopAccesses:
    """The accesses of a loop to some buffers, inner loops included, and the elements accessed before it."""

    def __init__(self, loop: scf.ForOp, buffers: set[SSAValue], accesses: _AccessCache) -> None:
        self.loop = loop
        self._accesses = accesses
        forms = Forms()
        self._overlaps = {buffer: Overlaps(forms) for buffer in buffers}
        self._unanalysed: set[SSAValue] = set()
        for op in ops_in(loop):
            accessed = accesses.of(op)
            if accessed is None:
                self._unanalysed |= {v for v in op.operands if v in buffers and not isinstance(op, PrefetchOp)}
            elif accessed.buffer in buffers:
                self._overlaps[accessed.buffer].add(accessed)

    def is_only_access(self, group: list[LowAccess]) -> bool:
        """Return whether no access in the loop outside a group may touch the element that the group accesses."""
        first, members = group[0], {a.op for a in group}
        if first.buffer in self._unanalysed:
            return False
        return all(overlapping.op in members for overlapping in self._overlaps[first.buffer].meeting(first))

    @cached_property
    def surely_runs(self) -> bool:
        """Whether the loop has an iteration for any values of its bounds."""
        return Ranges().surely_runs(self.loop)

    @cached_property
    def before(self) -> set[object]:
        """The elements that are certainly accessed before the loop."""
        return {earlier.place for earlier in _accesses_before(self.loop, self._accesses)}


def _groups(loop: scf.ForOp, accesses: _AccessCache) -> list[list[LowAccess]]:
    """Group the accesses directly in the loop's body by element; return the groups with both loads and stores."""
    groups: dict[object, list[LowAccess]] = {}
    for op in loop.body.block.ops:
        accessed = accesses.of(op)
        if accessed is not None:
            groups.setdefault(accessed.place, []).append(accessed)
    return [g for g in groups.values() if len({a.is_store for a in g}) == 2]


def _is_fixed(loop: scf.ForOp, group: list[LowAccess]) -> bool:
    """Return whether a group's element has loop-invariant indices and mask, and no lane outside the mask is used."""
    first_access = group[0]
    operands = (
        *first_access.indices,
        first_access.buffer,
        *(() if first_access.mask is None else (first_access.mask,)),
    )
    return not any(loop.is_ancestor(value.owner) for value in operands) and all(map(_uses_masked_lanes_only, group))


def _is_promotable(body: _LoopAccesses, group: list[LowAccess]) -> bool:
    return body.is_only_access(group) and (body.surely_runs or group[0].place in body.before)


def _uses_masked_lanes_only(load: LowAccess) -> bool:
    """Return whether the result of a masked load, and all that elementwise ops compute from it, is used by stores under
    the same mask only; true for any other access."""
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
                results = _elementwise_results(use.operation, use.index)
                if results is None:
                    return False
                pending.extend(results)
    return True


def _elementwise_results(user: Operation, operand: int) -> Sequence[SSAValue] | None:
    """Return the results or carried values that depend lane by lane on an operand of an op; None for other ops."""
    if user.name.startswith(("arith.", "math.")) or isinstance(user, vector.FMAOp):
        return user.results
    loop, first_carried = (user.parent_op(), 0) if isinstance(user, scf.YieldOp) else (user, 3)
    if not isinstance(loop, scf.ForOp) or operand < first_carried:
        return None
    return loop.results[operand - first_carried], loop.body.block.args[operand - first_carried + 1]


def _stores_masked(user: Operation, operand: int, mask: SSAValue) -> bool:
    """Return whether an op is a store under `mask` whose stored value is operand number `operand`."""
    store = access(user)
    return store is not None and store.is_store and store.mask is mask and operand == len(user.operands) - 1


def _accesses_before(op: Operation, accesses: _AccessCache) -> Iterator[LowAccess]:
    """Yield the accesses that certainly ran before an op: earlier in its block or in one around it. The search ends at
    a parallel loop: other iterations may write the element meanwhile."""
    position: Operation | None = op
    while position is not None and not isinstance(position, scf.ParallelOp):
        earlier = position.prev_op
        while earlier is not None:
            accessed = accesses.of(earlier)
            if accessed is not None:
                yield accessed
            earlier = earlier.prev_op
        position = position.parent_op()


def _rebuild(loop: scf.ForOp, groups: list[list[LowAccess]]) -> None:
    """Rebuild the loop with one more loop-carried value for each group, loaded before the loop and stored after it."""
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
    new_loop = scf.ForOp(loop.lb, loop.ub, loop.step, [*loop.iter_args, *initial], loop.detach_region(loop.body))
    new_loop.attributes |= loop.attributes
    results = rewriter.insert(new_loop).results
    for group, value in zip(groups, results[len(loop.results) :], strict=True):
        stores = [a for a in group if a.is_store]
        rewriter.insert(stores[0].with_stored(value))
        for store in stores:
            Rewriter.erase_op(store.op)
    rewriter.replace(loop, [], results[: len(loop.results)])


def _carried_value(group: list[LowAccess], value: SSAValue, kept_load: Operation) -> SSAValue:
    """Replace the group's loads by the value that flows through the body; return the value at its end. `kept_load` is
    detached, other loads are erased."""
    for a in group:
        if a.is_store:
            value = a.stored
            continue
        a.op.results[0].replace_all_uses_with(value)
        if a.op is kept_load:
            a.op.detach()
        else:
            Rewriter.erase_op(a.op)
    return value


def _forward_stores(block: Block, accesses: _AccessCache) -> None:
    """Forward stores to later loads of the same element in a block, and erase stores that are overwritten unread."""
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
            source = stores.by_place.get(accessed.place)
            if source is not None and _uses_masked_lanes_only(accessed):
                op.results[0].replace_all_uses_with(source.stored)
                block.erase_op(op)
            else:
                stores.latest = op


class _LiveStores:
    """The stores that determine the content of a buffer, by element, and the latest op that accessed it."""

    def __init__(self, forms: Forms) -> None:
        self.by_place: dict[object, LowAccess] = {}
        self.latest: Operation | None = None
        self._overlaps = Overlaps(forms)

    def overwrite(self, store: LowAccess) -> None:
        """Record a store and forget overlapping stores. Erase the former store to the same element if the buffer was
        not accessed since."""
        former = self.by_place.get(store.place)
        is_dead = former is not None and self.latest is former.op
        for overlapping in self._overlaps.meeting(store):
            self._overlaps.remove(overlapping)
            del self.by_place[overlapping.place]
        if is_dead and former is not None:
            Rewriter.erase_op(former.op)
        self._overlaps.add(store)
        self.by_place[store.place] = store
        self.latest = store.op


def _drop_unread_buffers(module: ModuleOp) -> None:
    for op in ops_in(module):
        if isinstance(op, memref.AllocOp):
            users = [use.operation for use in op.memref.uses]
            if all(leaves_unread(user, op.memref) for user in users):
                for user in users:
                    Rewriter.erase_op(user)
                Rewriter.erase_op(op)
