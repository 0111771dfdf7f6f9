"""Gathers at every level: against numpy, scheduled, proved, refuted where a fault is planted, and refused in words."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import te
from compiler.affine import linear as lin
from compiler.analysis.verify.prove import verify_schedule
from compiler.interpret import loop as interpreter
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Block, Program
from compiler.program.write import write
from compiler.schedule import Schedule, replay
from compiler.support.errors import ScheduleError, TeError
from compiler.types.dtypes import DTYPES as DTYPES_OF
from compiler.types.dtypes import INDICES
from tests.upstream import assert_accepted, needs_mlir_opt

P = te.placeholder


def rows() -> te.Function:
    """Z = E[I] + 1 with a computed table E = 2 T; index values outside give -1."""
    t, i = P((10, 16), name="T"), P((6,), "i32", name="I")
    e = te.compute((10, 16), lambda r, c: t[r, c] * 2, name="E")
    y = te.gather((6, 16), lambda i_, d: e.at(i[i_], d), name="Y", axes=["i", "d"], otherwise=-1)
    return te.function("rows", [t, i], te.compute((6, 16), lambda i, d: y[i, d] + 1, name="Z"))


def pairs() -> te.Function:
    """Y[i, j] = T[I[i], J[i, j], 3 - j]."""
    t = P((5, 7, 4), name="T")
    i, j = P((6,), "i64", name="I"), P((6, 4), "i32", name="J")
    y = te.gather((6, 4), lambda a, b: t.at(i[a], j[a, b], 3 - b), name="Y")
    return te.function("pairs", [t, i, j], y)


DTYPES = {name: np.dtype(DTYPES_OF[name].numpy) for name in ("f32", *INDICES)}


def arrays_for(function: te.Function, seed: int = 0) -> list[np.ndarray[Any, Any]]:
    """Floats, and indices of which some are outside any table."""
    rng = np.random.default_rng(seed)
    collected: list[np.ndarray[Any, Any]] = []
    for tensor in function.inputs:
        if tensor.dtype == "f32":
            collected.append(rng.uniform(-1, 1, tensor.shape).astype(np.float32))
        else:
            values = rng.integers(-2, 12, tensor.shape)
            values.flat[0] = rng.choice([-1, np.iinfo(DTYPES[tensor.dtype]).min, np.iinfo(DTYPES[tensor.dtype]).max])
            collected.append(values.astype(DTYPES[tensor.dtype]))
    return collected


def right(program: Program, function: te.Function, native: bool = False) -> bool:
    """Whether a program, interpreted, and perhaps compiled, gives what the evaluator does."""
    arrays = arrays_for(function)
    (want,) = evaluator.evaluate(function.module, arrays)
    output = np.full_like(want, np.nan)
    module = compiler.lower(function)
    schedule = Schedule(module)
    schedule._state.program = program
    try:
        interpreter.run(schedule.module, [*arrays, output])
    except interpreter.InterpretError:
        return False
    if not np.array_equal(output, want, equal_nan=True):
        return False
    return not native or np.array_equal(compiler.build(schedule)(*arrays), want)


def test_evaluator() -> None:
    function = pairs()
    t, i, j = arrays_for(function)
    (actual,) = evaluator.evaluate(function.module, [t, i, j])
    for a in range(6):
        for b in range(4):
            inside = 0 <= i[a] < 5 and 0 <= j[a, b] < 7
            assert actual[a, b] == (t[i[a], j[a, b], 3 - b] if inside else 0)


def _vectorized(s: Schedule) -> None:
    loops = s.get_loops(s.get_block("Y"))
    s.vectorize(loops[-1])


def _masked(s: Schedule) -> None:
    loops = s.get_loops(s.get_block("Y"))
    _, inner = s.split(loops[-1], [None, 5])
    s.vectorize(inner)


def _lanes(s: Schedule) -> None:
    outer, inner = s.get_loops(s.get_block("Y"))
    s.reorder(inner, outer)
    _, lane = s.split(outer, [None, 4])
    s.vectorize(lane)


def _loops(s: Schedule) -> None:
    outer, inner = s.get_loops(s.get_block("Y"))
    first, second = s.split(outer, [None, 4])
    three, four = s.split(inner, [3, None])
    s.reorder(three, second)
    s.unroll(four)
    s.parallel(first)


def _fused(s: Schedule) -> None:
    s.parallel(s.fuse(*s.get_loops(s.get_block("Y"))))


def _bound(s: Schedule) -> None:
    s.partition(s.get_loops(s.get_block("Y"))[0], 2)


def _caches(s: Schedule) -> None:
    y = s.get_block("Y")
    s.cache_read(y, "I", "local")
    s.cache_write(y, "local")


def _whole_table(s: Schedule) -> None:
    y = s.get_block("Y")
    s.cache_read(y, s.program.blocks["Y"].table.buffer, "shared")  # type: ignore[union-attr]


def _staged(s: Schedule) -> None:
    y = s.get_block("Y")
    s.stage(s.get_loops(y)[0], "I", "local")


def _packed(s: Schedule) -> None:
    s.pack(s.get_block("Y"), "I", [4])


SCRIPTS: dict[str, Callable[[Schedule], None]] = {
    "vectorized": _vectorized,
    "masked": _masked,
    "lanes": _lanes,
    "loops": _loops,
    "fused": _fused,
    "partitioned": _bound,
    "caches": _caches,
    "whole_table": _whole_table,
    "staged": _staged,
    "packed": _packed,
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("function", [rows, pairs])
def test_schedules(name: str, function: Callable[[], te.Function]) -> None:
    built = function()
    schedule = Schedule(compiler.lower(built))
    SCRIPTS[name](schedule)
    assert str(schedule.verify()) == "proved"
    assert right(schedule.program, built, native=True)
    again = replay(parse(str(schedule)), schedule)
    assert str(again.module) == str(schedule.module)
    assert write(read(schedule.function)).is_structurally_equivalent(schedule.function)


def test_placement() -> None:
    built = rows()
    schedule = Schedule(compiler.lower(built))
    z = schedule.get_block("Z")
    schedule.compute_at(schedule.get_block("Y"), schedule.get_loops(z)[0])
    assert schedule.program.buffers["Y"].shape == (1, 16)
    assert str(schedule.verify()) == "proved"
    assert right(schedule.program, built, native=True)


def test_reverse_placement_of_a_consumer() -> None:
    built = rows()
    schedule = Schedule(compiler.lower(built))
    schedule.reverse_compute_at(schedule.get_block("Z"), schedule.get_loops(schedule.get_block("Y"))[0])
    assert str(schedule.verify()) == "proved"
    assert right(schedule.program, built, native=True)


@pytest.mark.sampled
@needs_mlir_opt
@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("function", [rows, pairs])
def test_upstream_accepts(name: str, function: Callable[[], te.Function]) -> None:
    schedule = Schedule(compiler.lower(function()))
    SCRIPTS[name](schedule)
    assert_accepted(compiler.build(schedule).text("low"))


# --- faults ---------------------------------------------------------------------------------------------------------


def _gather(program: Program, **changes: Any) -> Program:
    block = program.blocks["Y"]
    return program.replaced("Y", lambda _: [replace(block, **changes)])


def _other_outside(p: Program) -> Program:
    table = p.blocks["Y"].table
    assert table is not None
    second = type(table.otherwise)(5.0, table.otherwise.type)  # type: ignore[arg-type]
    return _gather(p, table=replace(table, otherwise=second))


def _other_column(p: Program) -> Program:
    table = p.blocks["Y"].table
    assert table is not None
    index = (*table.index[:-1], lin.constant(1))
    return _gather(p, table=replace(table, index=index))


def _other_index(p: Program) -> Program:
    block = p.blocks["Y"]
    first = replace(block.reads[0], index=(lin.constant(2), *block.reads[0].index[1:]))
    return _gather(p, reads=(first, *block.reads[1:]))


def _other_table(p: Program) -> Program:
    table = p.blocks["Y"].table
    assert table is not None
    return _gather(p, table=replace(table, buffer="T"))


def _before_the_table(p: Program) -> Program:
    order = [p.body[i] for i in (0, 2, 3, 1, 4)]
    return replace(p, body=tuple(order))


def _table_written_after(p: Program) -> Program:
    """Another block overwrites a row of the table before the gather."""
    spoil = p.blocks["E"]
    again = Block("spoil", spoil.axes, (lin.constant(3), lin.constant(4)), (), (), (), spoil.writes, (_seven(spoil),))
    return replace(p, body=(*p.body[:2], again, *p.body[2:]))


def _seven(block: Block) -> Any:
    from xdsl.dialects.builtin import FloatAttr

    from compiler.program import body

    return body.constant(FloatAttr(7.0, block.read_types[0]))  # type: ignore[arg-type]


def _part_of_the_table(p: Program) -> Program:
    """The last row of the table is never computed."""
    from compiler.affine.condition import Condition

    block = p.blocks["E"]
    limit = Condition(lin.constant(8) - block.bindings[0])
    return p.replaced("E", lambda _: [replace(block, guard=(limit,))])


ROWS = [
    _other_outside,
    _other_column,
    _other_index,
    _other_table,
    _before_the_table,
    _table_written_after,
    _part_of_the_table,
]


@pytest.mark.parametrize("fault", ROWS)
def test_faults_are_not_proved(fault: Callable[[Program], Program]) -> None:
    original = Schedule(compiler.lower(rows())).program
    verdict = verify_schedule(fault(original), original)
    assert verdict.answer == "refuted", str(verdict)


def test_a_swapped_dimension_is_not_proved() -> None:
    original = Schedule(compiler.lower(pairs())).program
    block = original.blocks["Y"]
    assert block.table is not None
    wrong = _gather(original, reads=block.reads[::-1], read_types=block.read_types[::-1])
    assert verify_schedule(wrong, original).answer == "refuted"
    turned = _gather(original, table=replace(block.table, index=(1, 0, block.table.index[2])))
    assert not verify_schedule(turned, original)


def test_a_gather_is_no_block() -> None:
    original = Schedule(compiler.lower(rows())).program
    block = original.blocks["E"]
    wrong = original.replaced("Y", lambda _: [replace(original.blocks["Y"], table=None, reads=block.reads)])
    assert verify_schedule(wrong, original).answer == "refuted"


# --- refusals -------------------------------------------------------------------------------------------------------


GATHERS = "block 'Y' gathers from 'E': which elements it reads depends on data"
REFUSED: dict[str, tuple[Callable[[Schedule], Any], str]] = {
    "compute_at": (
        lambda s: s.compute_at(s.get_block("E"), s.get_loops(s.get_block("Y"))[0]),
        f"^compute_at: block 'E': {GATHERS}$",
    ),
    "reverse_compute_at": (
        lambda s: s.reverse_compute_at(s.get_block("Y"), s.get_loops(s.get_block("E"))[0]),
        f"^reverse_compute_at: block 'Y': {GATHERS}$",
    ),
    "inline the table": (lambda s: s.inline(s.get_block("E")), f"^inline: block 'E': {GATHERS}$"),
    "inline the gather": (lambda s: s.inline(s.get_block("Y")), "is a gather"),
    "reverse_inline": (lambda s: s.reverse_inline(s.get_block("Z")), "is a gather"),
    "stage": (lambda s: s.stage("Y.i", "E", "local"), f"^stage: loop 'i': {GATHERS}$"),
    "pack": (lambda s: s.pack(s.get_block("Y"), "E", [4, 1]), "gathers from 'E'"),
    "transform_layout": (lambda s: s.transform_layout(s.get_block("E"), "E", lambda i, j: (j, i)), "gathers from 'E'"),
    "swizzle": (lambda s: s.swizzle(s.get_block("E"), 4), "gathers from 'E'"),
    "storage_align": (lambda s: s.storage_align(s.get_block("E"), 0, 8, 4), "gathers from 'E'"),
    "pad": (lambda s: s.split(s.get_loops(s.get_block("Y"))[0], [None, 4], "pad"), "is a gather"),
    "pad the table": (lambda s: s.split(s.get_loops(s.get_block("E"))[0], [None, 4], "pad"), "gathers from 'E'"),
    "parallel before": (
        lambda s: s.merge(s.get_loops(s.get_block("E"))[0], s.get_loops(s.get_block("Y"))[0]),
        r"^merge: Y\[0,0\] reads E\[1,0\] before E\[1,0\] has been written$",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    schedule = Schedule(compiler.lower(rows()))
    call, sentence = REFUSED[name]
    before = schedule.program
    with pytest.raises(ScheduleError, match=sentence):
        call(schedule)
    assert schedule.program is before


T, I, F = P((4, 5), name="T"), P((3,), "i64", name="I"), P((3,), name="F")

WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "compute": (lambda: te.compute((3, 5), lambda i, d: T[I[i], d]), "te.gather reads at one"),
    "at in compute": (lambda: te.compute((3, 5), lambda i, d: T.at(I[i], d) + 1), "a te.gather of its own"),
    "no index": (lambda: te.gather((4, 5), lambda i, d: T.at(i, d)), "write a te.compute"),
    "no table read": (lambda: te.gather((3,), lambda i: I[i]), "must return one read of a table"),
    "arithmetic": (lambda: te.gather((3, 5), lambda i, d: T.at(I[i] + 1, d)), "compute it as a tensor first"),
    "float index": (lambda: te.gather((3, 5), lambda i, d: T.at(F[i], d)), "of f32, not integers"),
    "rank": (lambda: te.gather((3, 5), lambda i, d: T.at(I[i])), "has 2 dimensions, indexed with 1"),
    "bounds": (lambda: te.gather((3, 6), lambda i, d: T.at(I[i], d)), "out of bounds in dimension 1"),
    "index bounds": (lambda: te.gather((4, 5), lambda i, d: T.at(I[i], d)), "'I' is out of bounds"),
    "text index": (lambda: te.gather((3, 5), lambda i, d: T.at("x", d)), "indexed with 'x'"),
    "nn indices": (lambda: te.nn.gather(T, F), "not integers"),
    "nn axis": (lambda: te.nn.gather(T, I, 2), "has no axis 2"),
    "nn rank": (lambda: te.nn.take_along_axis(T, I), "expected 2 dimensions"),
    "nn weight": (lambda: te.nn.embedding(I, I), "expected 2 dimensions"),
    "classes": (lambda: te.nn.cross_entropy(T, I), "expected \\(4,\\)"),
    "probabilities": (lambda: te.nn.cross_entropy(T, F), "are not as the logits"),
    "reduction": (lambda: te.nn.mse_loss(T, T, "max"), "unknown reduction 'max'"),
    "mse": (lambda: te.nn.mse_loss(T, F), "of shape \\(4, 5\\), 'F'"),
    "mse of integers": (lambda: te.nn.mse_loss(I, I), "expected a float dtype"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input(name: str) -> None:
    build, sentence = WRONG[name]
    with pytest.raises(TeError, match=sentence):
        build()


@pytest.mark.parametrize("dtype", INDICES)
def test_extreme_indices_touch_nothing(dtype: str) -> None:
    table, index = P((4, 8), name="T"), P((6,), dtype, name="I")
    function = te.function("f", [table, index], te.nn.embedding(index, table, otherwise=3.5))
    info = np.iinfo(DTYPES[dtype])
    outside = [info.min, -1, info.max, 4] if info.min else [int(info.max), int(info.max) // 2 + 1, 128, 4]
    at = np.array([*outside, 0, 3], DTYPES[dtype])
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    actual = compiler.build(function)(values, at)
    assert (actual[:4] == 3.5).all()
    assert (actual[4:] == values[[0, 3]]).all()


def test_random_shapes() -> None:
    rng = random.Random(0)
    for _ in range(10):
        shape = tuple(rng.randint(1, 6) for _ in range(rng.randint(1, 3)))
        axis = rng.randrange(len(shape))
        table, index = P(shape, name="T"), P((rng.randint(1, 5),), "i32", name="I")
        function = te.function("f", [table, index], te.nn.gather(table, index, axis))
        values = np.random.default_rng(0).random(shape, np.float32)
        at = np.array([rng.randrange(shape[axis]) for _ in range(index.shape[0])], np.int32)
        np.testing.assert_array_equal(compiler.build(function)(values, at), np.take(values, at, axis))


# --- random programs ------------------------------------------------------------------------------------------------


def _shifted_table(block: Block, p: Program, rng: random.Random) -> Block | None:
    assert block.table is not None
    shape = p.buffers[block.table.buffer].shape
    dims = [d for d, f in enumerate(block.table.index) if not isinstance(f, int) and shape[d] > 1]
    if not dims:
        return None
    dim = rng.choice(dims)
    form = block.table.index[dim]
    assert not isinstance(form, int)
    moved = lin.mod(form + lin.constant(1), shape[dim], block.axis_ranges)
    index = (*block.table.index[:dim], moved, *block.table.index[dim + 1 :])
    return replace(block, table=replace(block.table, index=index))


def _shifted_index(block: Block, p: Program, rng: random.Random) -> Block | None:
    number = rng.randrange(len(block.reads))
    access = block.reads[number]
    size = p.buffers[access.buffer].shape[0]
    if size == 1 or access.where:
        return None
    moved = lin.mod(access.index[0] + lin.constant(1), size, block.axis_ranges)
    changed = replace(access, index=(moved, *access.index[1:]))
    return replace(block, reads=(*block.reads[:number], changed, *block.reads[number + 1 :]))


def _other_of_its_shape(block: Block, p: Program, rng: random.Random) -> Block | None:
    assert block.table is not None
    own = p.buffers[block.table.buffer]
    others = [b.name for b in p.arguments if b.shape == own.shape and b.element == own.element and b.name != own.name]
    return replace(block, table=replace(block.table, buffer=rng.choice(others))) if others else None


def test_faults_in_random_schedules_are_not_proved() -> None:
    from compiler.fuzz.programs import arrays_for as random_arrays
    from tests.fuzz.scripts import close, interpreted, walk

    answers: list[str] = []
    for seed in range(150):
        function, walker = walk(seed, 5)
        program, rng = walker.s.program, random.Random(seed)
        gathers = [b for b in program.blocks.values() if b.table is not None]
        if not gathers:
            continue
        block = rng.choice(gathers)
        fault = rng.choice([_shifted_table, _shifted_index, _other_of_its_shape])
        changed = fault(block, program, rng)
        if changed is None:
            continue
        wrong = program.replaced(block.label, lambda _, new=changed: [new])  # type: ignore[misc]
        verdict = verify_schedule(wrong, Schedule(walker.s.original).program)
        arrays = random_arrays(function, seed)
        expected = list(evaluator.evaluate(function.module, arrays))
        harmless = close(interpreted(ModuleOp([write(wrong)]), arrays, expected), expected)
        assert harmless or verdict.answer != "proved", f"seed {seed}: {fault.__name__} was proved"
        answers.append(verdict.answer)
    assert answers.count("refuted") > len(answers) // 2
