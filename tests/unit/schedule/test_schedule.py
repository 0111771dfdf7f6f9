"""Schedule and replay: scripts that round-trip, results that stay, handles that are consumed, refusals that change
nothing."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

import compiler
from compiler import te, universe
from compiler.dialects.functions import find_function
from compiler.dialects.sched import SchedOp
from compiler.schedule import Handle, Schedule, as_python, replay
from compiler.schedule.dialect import SCHED
from compiler.support.errors import InputError, ScheduleError
from examples import primitives as examples
from strata.passes import parse, parse_passes, run
from tests.operators import CASES, inputs
from tests.schedules import SCHEDULES, agree, lowered, mm_exp_mm

NOT_YET = {"auto", "include"}
"""Ops that are refused for now, whatever they are applied to."""

REFUSED = sorted(name for name in examples.PROGRAMS if name.endswith("_refused"))

Apply = Callable[[Schedule], Any]


def scheduled(apply: Apply, seed: int = 0) -> Schedule:
    """exp(A @ B) @ E, blocks C, D and F, under a schedule."""
    schedule = Schedule(lowered(mm_exp_mm()), seed=seed)
    apply(schedule)
    return schedule


def said(call: Callable[[], object]) -> str:
    with pytest.raises(ScheduleError) as error:
        call()
    return str(error.value)


def texts(schedule: Schedule) -> tuple[str, str]:
    """The scheduled module and the script."""
    return str(schedule.module), str(schedule)


def ops_of(schedule: Schedule) -> set[str]:
    return {op.name.removeprefix("sched.") for op in schedule.script.walk() if isinstance(op, SchedOp)}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_a_copy_is_a_schedule_of_its_own(copied: Callable[[Schedule], Schedule]) -> None:
    schedule = scheduled(lambda s: s.split("C.l", [None, 4]))
    before = texts(schedule)
    other = copied(schedule)
    assert texts(other) == before
    other.vectorize("C.l.1")
    assert texts(schedule) == before != texts(other)
    schedule.unroll("C.l.1")
    assert "vectorize" not in str(schedule) and "unroll" not in str(other)


def test_a_schedule_is_not_pickled() -> None:
    with pytest.raises(TypeError, match=r"keep its text, str\(schedule\)"):
        pickle.dumps(scheduled(lambda s: s.parallel("C.m")))


# --- scripts --------------------------------------------------------------------------------------------------------


def test_a_schedule_is_built_like_its_function() -> None:
    function = CASES["matmul-3"]()
    kernel = compiler.build(function)
    schedule = Schedule(parse(kernel.text("loop")))
    arrays = inputs(function)
    np.testing.assert_array_equal(compiler.build(schedule)(*arrays), kernel(*arrays))
    assert schedule.function.sym_name.data == "matmul"


def test_the_empty_script_round_trips() -> None:
    schedule = Schedule(compiler.lower(CASES["matmul-0"]()))
    assert str(parse(str(schedule))) == str(schedule)
    assert "transform.named_sequence @schedule" in str(schedule)


def test_the_original_is_untouched() -> None:
    module = compiler.lower(CASES["matmul-0"]())
    before = str(module)
    next(iter(Schedule(module).function.body.block.ops)).detach()
    assert str(module) == before


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_script_prints_parses_and_replays(name: str) -> None:
    schedule = scheduled(SCHEDULES[name])
    assert str(parse(str(schedule))) == str(schedule)
    assert texts(replay(parse(str(schedule)), schedule)) == texts(schedule)
    assert texts(Schedule(schedule.original).apply(schedule.script)) == texts(schedule)


@pytest.mark.sampled
@pytest.mark.parametrize("name", SCHEDULES)
def test_the_results_stay(name: str) -> None:
    assert agree(scheduled(SCHEDULES[name]).program, mm_exp_mm())


def test_every_primitive_is_in_a_script() -> None:
    used = set.union(*(ops_of(scheduled(apply)) for apply in SCHEDULES.values()))
    for name in examples.PROGRAMS:
        if name not in REFUSED:
            schedule = Schedule(compiler.lower(examples.PROGRAMS[name]()))
            getattr(examples, name)(schedule)
            used |= ops_of(schedule)
    schedule = scheduled(lambda s: s.get_consumers(*s.get_producers(s.get_block("D"))))
    assert used | ops_of(schedule) == {op.name.removeprefix("sched.") for op in SCHED.operations} - NOT_YET


def test_a_written_script_is_a_schedule() -> None:
    script = """
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %d = sched.get_block %f "D"
      %m, %l = sched.get_loops %d : !sched.loop, !sched.loop
      %outer, %inner = sched.split %l by [-1, 4] : !sched.loop, !sched.loop
      sched.vectorize %inner
      transform.yield
    }"""
    schedule = replay(parse(script), lowered(mm_exp_mm()))
    assert 'loop.for "l.1" %l.1 = 4 vectorized' in str(schedule.module)
    assert agree(schedule.program, mm_exp_mm())


# --- choices --------------------------------------------------------------------------------------------------------


def open_choices(s: Schedule) -> None:
    """A space: tiles of a loop, a width, a place."""
    d = s.get_block("D")
    m, l = s.get_loops(d)
    s.split(m, s.sample_perfect_tile(m, 3, 4))
    s.split(l, [s.sample_categorical([7, 14]), s.sample_categorical([2, 4, 8])])
    s.compute_at(s.get_block("C"), s.sample_location(s.get_block("C")))


def test_a_seed_decides() -> None:
    scripts = [str(scheduled(open_choices, seed)) for seed in range(8)]
    assert scripts[3] == str(scheduled(open_choices, 3))
    assert len(set(scripts)) > 1


@pytest.mark.parametrize("seed", range(4))
def test_decisions_are_recorded(seed: int) -> None:
    schedule = scheduled(open_choices, seed)
    assert all("decision" in op.properties for op in schedule.script.walk() if op.name.startswith("sched.sample"))
    assert texts(replay(schedule.script, schedule, seed=seed + 100)) == texts(schedule)
    assert agree(schedule.program, mm_exp_mm())


def test_sizes_may_come_one_by_one() -> None:
    s, t = Schedule(lowered(mm_exp_mm())), Schedule(lowered(mm_exp_mm()))
    s.split(s.get_loops(s.get_block("C"))[0], (size for size in [None, 4]))  # type: ignore[arg-type]
    t.split(t.get_loops(t.get_block("C"))[0], [None, 4])
    assert str(s) == str(t)


def test_the_value_of_a_choice() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    m = s.get_loops(s.get_block("C"))[0]
    outer, inner = s.sample_perfect_tile(m, 2, decision=[4, 3])
    assert (s.value(outer), s.value(inner)) == (4, 3)
    assert [s.extent(loop) for loop in s.split(m, [outer, inner])] == [4, 3]


# --- handles --------------------------------------------------------------------------------------------------------


def test_handles_have_names() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    c = s.get_block("C")
    assert s.label(c) == "C"
    assert [s.label(loop) for loop in s.get_loops(c)] == ["m", "l", "k"]
    assert [s.extent(loop) for loop in s.get_loops(c)] == [12, 14, 10]
    assert [s.label(block) for block in s.get_consumers(c)] == ["D"]
    assert [s.label(block) for block in s.get_producers(s.get_block("F"))] == ["D"]


def pipelined(s: Schedule) -> Handle:
    copy = s.cache_read(s.get_block("C"), "B")
    k = s.get_loops(s.get_block("C"))[0]
    s.compute_at(copy, k)
    s.double_buffer(copy)
    s.software_pipeline(k, [0, 1])
    return k


CONSUMED: dict[str, Callable[[Schedule, list[Handle], list[Handle]], Handle]] = {
    "split": lambda s, c, d: [c[0], s.split(c[0], [None, 4])][0],
    "partition": lambda s, c, d: [c[1], s.partition(c[1], 3)][0],
    "fuse": lambda s, c, d: [c[1], s.fuse(c[0], c[1])][0],
    "merge": lambda s, c, d: [d[0], s.merge(c[0], d[0])][0],
    "distribute": lambda s, c, d: [both := s.merge(c[0], d[0]), s.distribute(both, s.get_block("C"))][0],
    "software_pipeline": lambda s, c, d: pipelined(s),
    "inline": lambda s, c, d: [d[0], s.inline(s.get_block("D"))][0],
}
"""For each consuming primitive: apply it to loops of C or D; one of the handles that are gone."""


@pytest.mark.parametrize("name", CONSUMED)
def test_a_consumed_handle_names_its_consumer(name: str) -> None:
    s = Schedule(lowered(mm_exp_mm()))
    gone = CONSUMED[name](s, s.get_loops(s.get_block("C")), s.get_loops(s.get_block("D")))
    before = texts(s)
    assert f"it has been consumed by '{name}'" in said(lambda: s.unroll(gone))
    assert texts(s) == before


@pytest.mark.parametrize("block", ["inline", "reverse_inline"])
def test_a_consumed_block_names_its_consumer(block: str) -> None:
    def apply(s: Schedule) -> Handle:
        handle = s.get_block("T" if block == "inline" else "S")
        getattr(s, block)(handle)
        return handle

    s = Schedule(compiler.lower(examples.transposed()))
    handle = apply(s)
    assert f"it has been consumed by '{block}'" in said(lambda: s.set_scope(handle, "shared"))


def test_wrong_handles() -> None:
    s, second = Schedule(lowered(mm_exp_mm())), Schedule(lowered(mm_exp_mm()))
    theirs = second.get_loops(second.get_block("C"))[0]
    assert said(lambda: s.unroll(theirs)) == "unroll: the loop handle belongs to another schedule"
    assert said(lambda: s.unroll(3)) == "unroll: it takes handles, not a int"  # type: ignore[arg-type]
    assert "Expected attribute !sched.loop" in said(lambda: s.unroll(s.get_block("C")))


# --- refusals -------------------------------------------------------------------------------------------------------


class Watched(Schedule):
    """A schedule that remembers what it was before the last primitive."""

    before = ("", "")

    def call(self, *args: Any, **more: Any) -> list[Handle]:
        self.before = texts(self)
        return super().call(*args, **more)


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_changes_nothing(name: str) -> None:
    s = Watched(compiler.lower(examples.PROGRAMS[name]()))
    said(lambda: getattr(examples, name)(s))
    assert texts(s) == s.before
    assert texts(replay(parse(str(s)), s)) == texts(s)


def test_what_can_be_scheduled() -> None:
    assert "is not at the loop level" in said(lambda: Schedule(CASES["matmul-0"]().module))
    for other, name in ((None, "NoneType"), ("text", "str"), (3, "int")):
        assert f"not of a {name}" in said(lambda other=other: Schedule(other))
    with pytest.raises(InputError, match="has no function @g"):
        Schedule(lowered(mm_exp_mm()), "g")


def test_what_is_not_judged_is_refuted() -> None:
    fault = """
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %c = sched.get_block %f "C"
      %m, %l, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
      sched.parallel %k
      transform.yield
    }
    """
    with pytest.raises(ScheduleError, match="iterations of loop 'k' depend on each other"):
        Schedule(lowered(mm_exp_mm())).apply(fault)
    assert Schedule(lowered(mm_exp_mm())).apply(fault, judged=False).verify().answer == "refuted"
    copy = Schedule(lowered(mm_exp_mm())).fork(judged=False)[0].fork()[0]
    copy.parallel("C.k")
    assert copy.verify().answer == "refuted"


def test_a_refused_script_knows_the_op() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    m = s.get_loops(s.get_block("C"))[0]
    s.split(m, [None, 6])
    narrow = lowered(mm_exp_mm(m=4))
    with pytest.raises(ScheduleError) as error:
        replay(parse(str(s).replace("[-1, 6]", "[1, 2]")), narrow)
    assert isinstance(error.value.op, Operation)
    assert error.value.op.name == "sched.split"


def test_what_came_before_a_refusal_stays_applied() -> None:
    script = scheduled(lambda s: [s.inline(s.get_block("D")), s.vectorize(s.get_loops(s.get_block("F"))[1])]).script
    second = scheduled(lambda s: s.vectorize(s.get_loops(s.get_block("F"))[2 - 1]))
    assert said(lambda: second.apply(script)) == "vectorize: loop 'n': it is vectorized already"
    assert "inline" in ops_of(second)


# --- passes ---------------------------------------------------------------------------------------------------------


def passed(spec: str) -> ModuleOp:
    """exp(A @ B) @ E after passes."""
    module = lowered(mm_exp_mm())
    run(universe.context(), module, parse_passes(spec))
    return module


def test_a_pass_schedules_all_functions_or_none() -> None:
    first, second = (str(find_function(lowered(mm_exp_mm(m=m)))) for m in (12, 5))
    module = parse(first + second.replace("@mm_exp_mm", "@two"))
    before = str(module)
    with pytest.raises(ScheduleError, match="position 5 is not inside its extent 5"):
        run(universe.context(), module, parse_passes("partition{block=C loop=m at=5}"))
    assert str(module) == before
    run(
        universe.context(),
        module,
        parse_passes("partition{block=C loop=m at=4},unroll{block=C loop=m.head function=two}"),
    )
    assert str(module).count('"m.rest"') == 2
    assert str(module).count("unrolled") == 1


HEAD = "transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {"
FORMS: dict[str, Callable[[Schedule, Path], Any]] = {
    "ir": lambda s, folder: s.script,
    "text": lambda s, folder: str(s),
    "one line": lambda s, folder: " ".join(str(s).split()),
    "path": lambda s, folder: Path(file_with(folder, s)),
    "name of a file": lambda s, folder: file_with(folder, s),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["compute_at", "choices"])
def test_a_printed_script_goes_back_in(name: str, form: str, tmp_path: Path) -> None:
    schedule = scheduled(SCHEDULES[name])
    given = FORMS[form](schedule, tmp_path)
    again = Schedule(schedule.original).apply(given)
    assert texts(again) == texts(schedule) == texts(replay(given, schedule))
    names: dict[str, Any] = {}
    exec(again.python(), names)
    by_python = Schedule(schedule.original)
    names["schedule"](by_python)
    assert str(by_python.module) == str(schedule.module)
    assert as_python(given) == schedule.python()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("nowhere.mlir", "there is no file 'nowhere.mlir', and it is no text of a script"),
        ("/", "the script / cannot be read: Is a directory"),
        (Path("/nowhere.mlir"), "the script /nowhere.mlir cannot be read: No such file"),
        ("module {", "the script cannot be read: line 1: .*the text ends"),
        ("module {\n}\n", "there are 0"),
        (f"{HEAD}\n  %x = sched.get_blok %f", "line 2: there is no primitive 'get_blok'; did you mean 'get_block'"),
        (3, "not a int"),
        (b"module {}", "not a bytes"),
    ],
)
def test_what_is_no_script_is_refused_in_a_sentence(given: Any, sentence: str) -> None:
    schedule = scheduled(lambda s: s.parallel("C.m"))
    before = texts(schedule)
    assert re.search(sentence, said(lambda: schedule.apply(given)))
    assert re.search(sentence, said(lambda: as_python(given)))
    assert texts(schedule) == before


def test_two_scripts_are_not_one() -> None:
    text = str(scheduled(lambda s: s.parallel("C.m")))
    assert "there are 2" in said(lambda: Schedule(lowered(mm_exp_mm())).apply(text + text))


def file_with(folder: Path, schedule: Schedule | str) -> str:
    path = folder / "script.mlir"
    path.write_text(str(schedule))
    return str(path)


def test_apply_schedule_reads_a_file(tmp_path: Path) -> None:
    schedule = scheduled(SCHEDULES["compute_at"])
    assert str(passed(f'apply-schedule{{script="{file_with(tmp_path, schedule)}"}}')) == str(schedule.module)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('%x = sched.get_block %f "X"', r"""sched.get_block %f "X": get_block: block 'X': there is none"""),
        ("%x = sched.nothing %f", "cannot be read: line 2: .*not registered"),
        ('%x = sched.cache_write %f in "local"', "does not verify|cannot be read"),
    ],
)
def test_a_wrong_script_of_a_file(tmp_path: Path, text: str, sentence: str) -> None:
    name = file_with(tmp_path, f"{HEAD}\n{text}\ntransform.yield\n}}")
    with pytest.raises((ScheduleError, InputError), match=sentence) as error:
        passed(f'apply-schedule{{script="{name}"}}')
    assert "script.mlir" in str(error.value)


def test_a_row_of_a_matrix_of_one_row_is_all_of_it() -> None:
    x = te.placeholder((1, 8), name="X")
    t = te.compute((1, 8), lambda i, j: x[i, j] * 2.0, name="T")
    s = Schedule(te.function("f", [x], [te.compute((8,), lambda j: t[0, j] + 1.0, name="Y")]))
    s.reverse_inline(s.get_block("Y"))
    assert list(s.program.blocks) == ["Y"] and s.verify()


def test_a_copy_stands_where_its_reader_is_written() -> None:
    s = Schedule(lowered(mm_exp_mm()))
    copy_label = s.label(s.cache_read(s.get_block("C"), "A", "local"))
    assert s.program.blocks[copy_label].location == s.program.blocks["C"].location
    assert str(s.program.blocks["C"].location).startswith("loc(")
