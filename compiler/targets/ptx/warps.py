"""Operations of the threads of a warp together: shfl.sync, vote.sync, activemask, bar.warp.sync."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from compiler.targets.ptx.shadow import WARP
from compiler.targets.ptx.syntax import PtxInstruction, RegisterList
from compiler.targets.ptx.table import Prepared, effect, modifiers_of, one_type
from compiler.targets.ptx.values import Array, Mask, bits_of

if TYPE_CHECKING:
    from compiler.targets.ptx.lanes import PtxLanes

_SHUFFLES = ("bfly", "down", "up", "idx")


@effect("shfl")
def shuffle(instruction: PtxInstruction) -> Prepared:
    """Prepare `shfl.sync.MODE.b32 d|p, a, distance, clamp, members`, MODE bfly, down, up or idx: d is the a of the
    source thread of the warp, or the thread's own a if the source is beyond the clamp; p is whether the source is
    within it. Reports threads that take part without a bit in `members`, else reads from threads that take no part.
    Raises PtxError for types other than of 32 bits."""
    (mode,) = modifiers_of(instruction, "sync", *_SHUFFLES) - {"sync"}
    type_ = one_type(instruction)
    to, of, distance, clamp, members = instruction.operands
    if bits_of(type_) != 32:
        raise instruction.refused("it moves 32 bits")

    def run(lanes: PtxLanes, mask: Mask) -> None:
        values = lanes.read(of, type_, mask, instruction)
        by, limit = (lanes.read(operand, "u32", mask, instruction).astype(np.int64) for operand in (distance, clamp))
        own = lanes.thread % WARP
        source, is_inside = shuffle_source(mode, own, by & 31, limit & 31, limit >> 8 & 31)
        position = np.arange(lanes.count) - own + source
        exists = lanes.thread - own + source < lanes.per_block
        named = lanes.read(members, "u32", mask, instruction)
        active = np.ones(lanes.count, np.bool_) if mask is None else mask
        takes_part = exists & active[np.where(exists, position, 0)] & _has_bit(named, source)
        for kind, wrong in (
            ("a thread that takes part unnamed", active & ~_has_bit(named, own)),
            ("shuffle from a thread that takes no part", active & ~takes_part),
        ):
            if wrong.any():
                lanes.report(kind, int(np.argmax(wrong)), "", None, instruction)
                break
        moved = values[np.where(exists, position, np.arange(lanes.count))]
        items = to.items if isinstance(to, RegisterList) else (to,)
        lanes.write(items[0], moved, type_, mask)
        if len(items) == 2:
            lanes.write(items[1], is_inside, "pred", mask)

    return run


def _has_bit(words: Array, bit: Array) -> Array:
    has: Array = words >> bit.astype(np.uint32) & np.uint32(1) != 0
    return has


def shuffle_source(mode: str, lane: Array, by: Array, limit: Array, segment: Array) -> tuple[Array, Array]:
    """Return the lane in the warp that each lane of a shuffle reads from, and the mask of those within the clamp;
    beyond it a lane reads itself. mode: up, down, bfly or idx. lane: of each lane in its warp. by: distance or index.
    limit, segment: the fields of the clamp operand, of 5 bits each."""
    least, most = lane & segment, (lane & segment) | (limit & ~segment & 31)
    if mode == "up":
        source = lane - by
        is_inside = source >= most
    else:
        source = {"down": lane + by, "bfly": lane ^ by, "idx": least | (by & ~segment & 31)}[mode]
        is_inside = source <= most
    return np.where(is_inside, source, lane), is_inside


@effect("vote")
def vote(instruction: PtxInstruction) -> Prepared:
    """Prepare a vote such as `vote.sync.any.pred d, p, members`, by the active threads of the warp that `members`
    names: `any`, `all` or `uni` (all or none) of p, or for `vote.sync.ballot.b32` a bit for each thread whose p is
    true. For threads that are not named the result is that of their warp, too. Raises PtxError for another modifier."""
    (mode,) = modifiers_of(instruction, "sync", "any", "all", "uni", "ballot") - {"sync"}
    to, of, members = instruction.operands

    def run(lanes: PtxLanes, mask: Mask) -> None:
        holds = lanes.read(of, "pred", mask, instruction)
        named = (
            lanes.read(members, "u32", mask, instruction) >> (lanes.thread % WARP).astype(np.uint32) & np.uint32(1) != 0
        )
        part = named if mask is None else named & mask
        yes, all_ = _ballot(lanes, holds & part), _ballot(lanes, part)
        results = {"any": yes != 0, "all": yes == all_, "uni": (yes == 0) | (yes == all_), "ballot": yes}
        lanes.write(to, results[mode], "b32" if mode == "ballot" else "pred", mask)

    return run


@effect("activemask")
def active_mask(instruction: PtxInstruction) -> Prepared:
    """Prepare `activemask.b32 d`: d has a bit for each thread of the warp that runs this instruction at the same
    step."""

    def run(lanes: PtxLanes, mask: Mask) -> None:
        active = np.ones(lanes.count, np.bool_) if mask is None else mask
        lanes.write(instruction.operands[0], _ballot(lanes, active), "b32", mask)

    return run


def _ballot(lanes: PtxLanes, holds: Array) -> Array:
    """Return, for each lane, a uint32 with a bit for each thread of its warp for which the predicate is true."""
    bits = holds.astype(np.uint64) << (lanes.thread % WARP).astype(np.uint64)
    words = np.zeros(int(lanes.warps[-1]) + 1, np.uint64)
    np.bitwise_or.at(words, lanes.warps, bits)
    of_lanes: Array = words[lanes.warps].astype(np.uint32)
    return of_lanes
