"""Calls of a schedule that are wrong on purpose: each ends in ScheduleError, with a sentence, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from xdsl.dialects.builtin import ModuleOp

from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from tests.schedules import lowered, mm_exp_mm

MODULE = lowered(mm_exp_mm())
Wrong = Callable[[Schedule, Any, list[Any]], Any]
WRONG: dict[str, Wrong] = {
    "split str": lambda s, c, L: s.split("x", [2]),
    "split block": lambda s, c, L: s.split(c, [None, 2]),
    "split none": lambda s, c, L: s.split(L[0], []),
    "split 0": lambda s, c, L: s.split(L[0], [None, 0]),
    "split neg": lambda s, c, L: s.split(L[0], [None, -4]),
    "split float": lambda s, c, L: s.split(L[0], [None, 2.5]),
    "split two none": lambda s, c, L: s.split(L[0], [None, None]),
    "split tail": lambda s, c, L: s.split(L[0], [None, 2], tail="foo"),
    "split huge": lambda s, c, L: s.split(L[0], [None, 10**30]),
    "get_block int": lambda s, c, L: s.get_block(5),
    "get_loops loop": lambda s, c, L: s.get_loops(L[0]),
    "reorder none": lambda s, c, L: s.reorder(),
    "reorder twice": lambda s, c, L: s.reorder(L[0], L[0]),
    "fuse one": lambda s, c, L: s.fuse(L[0]),
    "fuse list": lambda s, c, L: s.fuse(L),
    "partition out": lambda s, c, L: s.partition(L[0], 100),
    "partition str": lambda s, c, L: s.partition(L[0], "a"),
    "merge self": lambda s, c, L: s.merge(L[0], L[0]),
    "merge neg": lambda s, c, L: s.merge(L[0], s.get_loops(s.get_block("D"))[0], shift=-1),
    "bind": lambda s, c, L: s.bind(L[0], "warp"),
    "annotate": lambda s, c, L: s.annotate(L[0], "x", object()),
    "compute_at loop loop": lambda s, c, L: s.compute_at(L[0], L[1]),
    "compute_at self": lambda s, c, L: s.compute_at(c, L[1]),
    "cache scope": lambda s, c, L: s.cache_read(c, "A", "moon"),
    "cache buf": lambda s, c, L: s.cache_read(c, "Z"),
    "cache write scope": lambda s, c, L: s.cache_write(c, 3),
    "stage": lambda s, c, L: s.stage(L[0], "Z"),
    "lift": lambda s, c, L: s.lift_alloc("Z"),
    "lift2": lambda s, c, L: s.lift_alloc("C"),
    "pack len": lambda s, c, L: s.pack(c, "B", [1]),
    "pack order": lambda s, c, L: s.pack(c, "B", [1, 4], [0, 1]),
    "pack zero": lambda s, c, L: s.pack(c, "B", [0, 4]),
    "layout none": lambda s, c, L: s.transform_layout(c, "C", None),
    "layout str": lambda s, c, L: s.transform_layout(c, "C", lambda i, j: "x"),
    "layout div0": lambda s, c, L: s.transform_layout(c, "C", lambda i, j: (i // 0, j)),
    "layout neg": lambda s, c, L: s.transform_layout(c, "C", lambda i, j: (i * -1, j)),
    "layout prod": lambda s, c, L: s.transform_layout(c, "C", lambda i, j: (i * j,)),
    "align": lambda s, c, L: s.storage_align(c, 7, 4),
    "align0": lambda s, c, L: s.storage_align(c, 0, 0),
    "swizzle": lambda s, c, L: s.swizzle(c, 3),
    "prefetch": lambda s, c, L: s.prefetch(L[0], "A", 0),
    "double": lambda s, c, L: s.double_buffer(c),
    "pipe": lambda s, c, L: s.software_pipeline(L[0], []),
    "pipe neg": lambda s, c, L: s.software_pipeline(L[0], [-1]),
    "tile parts": lambda s, c, L: s.sample_perfect_tile(L[0], 0),
    "tile inner": lambda s, c, L: s.sample_perfect_tile(L[0], 2, 0),
    "tile dec": lambda s, c, L: s.sample_perfect_tile(L[0], 2, 8, [5, 5]),
    "cat": lambda s, c, L: s.sample_categorical([]),
    "cat p": lambda s, c, L: s.sample_categorical([1, 2], [0.5]),
    "cat dec": lambda s, c, L: s.sample_categorical([1, 2], decision=7),
    "auto": lambda s, c, L: s.auto(c),
    "tensorize": lambda s, c, L: s.tensorize(L[0], "amx"),
    "rfactor": lambda s, c, L: s.rfactor(c, L[0]),
    "extent of block": lambda s, c, L: s.extent(c),
    "label none": lambda s, c, L: s.label(None),
    "apply None": lambda s, c, L: s.apply(None),
    "apply empty": lambda s, c, L: s.apply(ModuleOp([])),
    "split words": lambda s, c, L: s.split(L[0], [None, "2"]),
    "split by a loop": lambda s, c, L: s.split(L[0], [None, L[1]]),
    "tile of another": lambda s, c, L: s.pack(c, "A", [Schedule(MODULE).sample_categorical([2]), 1]),
    "blocks of an argument": lambda s, c, L: s.transform_layout(c, "A", tiles=[2, 1]),
    "location": lambda s, c, L: s.sample_location(c, 17),
    "value of a loop": lambda s, c, L: s.value(L[0]),
    "loop of another": lambda s, c, L: s.unroll(Schedule(MODULE).get_loops(Schedule(MODULE).get_block("C"))[0]),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    s = Schedule(MODULE)
    block = s.get_block("C")
    loops = s.get_loops(block)
    module, program = str(s.module), s.program
    with pytest.raises(ScheduleError) as error:
        WRONG[name](s, block, loops)
    assert 10 < len(str(error.value)) < 300
    assert s.program is program
    assert str(s.module) == module


def test_a_consumed_handle_names_its_consumer() -> None:
    s = Schedule(MODULE)
    m, *_ = s.get_loops(s.get_block("C"))
    s.split(m, [None, 4])
    with pytest.raises(ScheduleError, match="reorder: loop 'm': it has been consumed by 'split'"):
        s.reorder(m, *s.get_loops(s.get_block("C"))[1:])
    d = s.get_block("D")
    s.inline(d)
    with pytest.raises(ScheduleError, match="consumed by 'inline'"):
        s.inline(d)


@pytest.mark.parametrize("handles", [0, 2])
def test_a_script_that_does_not_take_one_handle_is_refused(handles: int) -> None:
    taken = ", ".join(f"%{n}: !transform.any_op {{transform.readonly}}" for n in range(handles))
    script = parse(f"transform.named_sequence @schedule({taken}) {{\n  transform.yield\n}}\n")
    schedule = Schedule(MODULE)
    before = str(schedule.module), str(schedule)
    for given in (script, script.body.block.first_op):
        with pytest.raises(ScheduleError, match=f"takes the function, one handle, and this one takes {handles}"):
            schedule.apply(given)  # type: ignore[arg-type]
    assert (str(schedule.module), str(schedule)) == before
