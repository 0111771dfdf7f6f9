"""Blocks spread over the threads of GPUs, a result or several for each, and reductions in parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from compiler.program.body import Read
from compiler.program.tree import Block
from compiler.recipes.draft import Alternative, Draft, inlined
from compiler.recipes.steps import at_most, axes_of, fused, node_of, refusal, split_loops
from compiler.schedule import Handle, Schedule, Size
from compiler.support.errors import ScheduleError

WARP, THREADS = 32, 256
"""The threads of a warp, and the default number of threads of a block."""


def on_threads(draft: Draft, label: str) -> Iterator[Alternative]:
    """Yield schedules of a block with a thread for each result, of a reduction also with an elementwise epilogue, and
    for a block without a reduction also for four results, and with the block inlined. A block of one result runs on one
    thread."""
    block = draft.block(label)
    if not block.spatial or prod(axis.size for axis in block.axes if not axis.is_reduce) < 2:
        yield Alternative("on one thread", lambda draft: [label], optional=False)
        return
    if not block.combiners and block.table is None and draft.readers(label):
        yield Alternative("inlined", partial(_inlined, label=label), optional=False)
    after = draft.consumer(label) if block.has_init and len(block.writes) == 1 else None
    if after is not None:
        apply = partial(_spread_with, label=label, after=after)
        yield Alternative(f"spread over threads, with '{after.label}'", apply)
    for vector in (1,) if block.combiners or block.table is not None else (1, 4):
        name = f"spread over threads{', four at a time' if vector > 1 else ''}"
        yield Alternative(name, partial(_spread, label=label, vector=vector), optional=False)


def _inlined(draft: Draft, label: str) -> Sequence[str]:
    """Inline a block into its readers. Raises ScheduleError if a reader without an origin, such as a copy, would then
    compute a value: it is no te result of the program, so it could not be proved."""
    readers = [reader.label for reader in draft.readers(label)]
    inlined_labels = inlined(draft, label)
    for reader in map(draft.block, readers):
        if reader.origin is None and not reader.combiners and not all(isinstance(value, Read) for value in reader.body):
            raise ScheduleError(f"what '{reader.label}' would compute is no equation", "inline", f"block '{label}'")
    return inlined_labels


def _spread(draft: Draft, label: str, vector: int) -> Sequence[str]:
    s = draft.schedule
    threads = draft.choose([64, 128, 256, 512, 1024], THREADS, "threads")
    spread(s, s.get_block(label), threads, vector)
    return [label]


def _spread_with(draft: Draft, label: str, after: Block) -> Sequence[str]:
    s = draft.schedule
    threads = draft.choose([64, 128, 256, 512, 1024], THREADS, "threads")
    spread_sums(s, s.get_block(label), draft.handle(after), threads)
    return [label, after.label]


def reuses(block: Block) -> bool:
    """Return whether several results of a block read the same element of an operand."""
    spatial = {n for n, axis in enumerate(block.axes) if not axis.is_reduce and axis.size > 1}
    return any(spatial - axes_of(access) for access in block.reads)


def spread_on_threads(s: Schedule, results_loop: Handle, threads: Size | tuple[Size, Size], vector: int) -> None:
    """Bind a loop to the threads of a block along x, or y and x for two counts: neighbouring threads take neighbouring
    vectors of `vector` elements; 1 is no vectors."""
    sizes = threads if isinstance(threads, tuple) else (threads,)
    _, *bound = s.split(results_loop, [None, *sizes, *([vector] if vector > 1 else [])])
    if vector > 1:
        s.vectorize(bound.pop())
    for loop, kind in zip(reversed(bound), ("thread_x", "thread_y"), strict=False):
        s.bind(loop, kind)


def spread(s: Schedule, block: Handle, threads: Size = 256, vector: int = 1) -> Handle:
    """Spread the results of a block over the threads of a GPU: a block of threads computes neighbouring results.

        i { j { r { D } } }
      ->
        i_j.0 block_x { i_j.1 = threads thread_x { i_j.2 = vector vectorized { r { D } } } }

    There are at most as many threads as results. Returns the loop over threads. Requires loops over results that come
    first and are perfectly nested; `vector` above one requires a block without a reduction. Elsewhere: Halide gpu_tile,
    TVM's default GPU schedule.
    """
    results_loop = fused(s, split_loops(s, block)[0])
    outer, thread, *lanes = s.split(
        results_loop, [None, at_most(threads, s.extent(results_loop)), *([vector] if vector > 1 else [])]
    )
    s.bind(outer, "block_x")
    s.bind(thread, "thread_x")
    for lane in lanes:
        s.vectorize(lane)
    return thread


def in_parts(s: Schedule, block: Handle, length: int) -> Handle:
    """Split the longest loop of a reduction in parts of `length` iterations; a second nest combines their results.

        i { k { C[i] += A[i, k] } }
      ->
        k.0 { i { k.1 = length { C.rf[k.0, i] += A } } }
        i { k.0 { C[i] += C.rf[k.0, i] } }

    Returns the block of the parts. The last part is shorter if `length` does not divide the loop. Raises ScheduleError
    unless the block is a reduction with an implicit init whose loops over results come first. Source: split-K of the
    BLAS.
    """
    result_loops, along = results_and_reduction(s, block, "in_parts")
    longest = max(along, key=s.extent)
    part, within = s.split(longest, [None, length])
    s.reorder(part, *result_loops, *(within if loop is longest else loop for loop in along))
    return s.rfactor(block, part)


def results_and_reduction(s: Schedule, block: Handle, composite: str) -> tuple[list[Handle], list[Handle]]:
    """Return the loops over results and the reduction loops. Raises ScheduleError, in the name of `composite`, unless
    the block is a reduction with an implicit init whose loops over results come first."""
    results, reduced = split_loops(s, block)
    order = [loop.label for loop in s.program.enclosing(s.label(block))]
    if not node_of(s, block).has_init or not reduced or [*map(s.label, (*results, *reduced))] != order:
        raise refusal(s, block, composite, "it is no reduction with an implicit init, whose loops are the innermost")
    return results, reduced


def spread_sums(s: Schedule, block: Handle, epilogue: Handle | None, threads: Size = THREADS) -> None:
    """Schedule a short reduction, such as the sum of another one's parts: a thread for each result, which also applies
    the epilogue if any. Requires a loop over results then."""
    if epilogue is not None:
        s.set_scope(block, "local")
        s.reverse_compute_at(epilogue, split_loops(s, block)[0][-1])
    spread(s, block, threads)
