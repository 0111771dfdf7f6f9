"""verify_schedule proves what primitives make, refutes planted faults, and never proves what is wrong."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute

from compiler import te
from compiler.analysis.verify.prove import verify_schedule
from compiler.fuzz.programs import conditions
from compiler.opt import main as strata_opt
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Alloc, Program
from compiler.schedule import Schedule
from compiler.support.errors import ScheduleError
from tests.faults import FAULTS
from tests.fuzz import proofs
from tests.sample import some
from tests.schedules import SCHEDULES, agree, lowered, mm_exp_mm

FUNCTION = mm_exp_mm()
MODULE = lowered(FUNCTION)
ORIGINAL = Schedule(MODULE).program

# A fault that may leave the results as they are: a swap of independent parts, padding that nobody reads.
MAY_BE_HARMLESS = {"swapped", "shrunk", "missing", "changed_body"}


# Faults of reductions with several targets.
JOINT = ("reset_part", "other_combiner")


def scheduled(name: str) -> Schedule:
    schedule = Schedule(MODULE)
    SCHEDULES[name](schedule)
    return schedule


@pytest.mark.parametrize("name", SCHEDULES)
def test_proves(name: str) -> None:
    schedule = scheduled(name)
    assert str(schedule.verify()) == "proved"
    assert agree(schedule.program, FUNCTION)
    assert verify_schedule(read(schedule.function), ORIGINAL), "also as text"


@pytest.mark.parametrize("fault", [f for f in FAULTS if f not in JOINT])
@pytest.mark.parametrize("name", some(SCHEDULES, 2))
def test_refutes(name: str, fault: str) -> None:
    program = scheduled(name).program
    for seed in range(2):
        wrong = FAULTS[fault](program, random.Random(seed))
        if wrong is None:
            continue
        verdict = verify_schedule(wrong, ORIGINAL)
        if fault in MAY_BE_HARMLESS and agree(wrong, FUNCTION):
            assert verdict.answer in ("proved", "refuted", "undecided")
        else:
            assert verdict.answer == "refuted", f"{verdict}"
            assert verdict.reason


def selection() -> tuple[te.Function, Schedule]:
    """An argmax, factored, of several targets that are computed in step."""
    x = te.placeholder((6, 40), "i32", name="X")
    function = te.function("f", [x], te.nn.argmax(x))
    s = Schedule(lowered(function))
    block = s.get_block("argmax")
    _, inner = s.split(s.get_loops(block)[1], [None, 8])
    s.rfactor(block, inner)
    return function, s


@pytest.mark.parametrize("fault", JOINT)
def test_refutes_targets_out_of_step(fault: str) -> None:
    function, s = selection()
    assert s.verify()
    for seed in range(8):
        wrong = FAULTS[fault](s.program, random.Random(seed))
        assert wrong is not None
        verdict = verify_schedule(wrong, Schedule(s.original).program)
        assert verdict.answer == "refuted" or agree(wrong, function)


def test_every_fault_is_planted() -> None:
    for name, fault in FAULTS.items():
        if name not in JOINT:
            assert any(fault(scheduled(s).program, random.Random(0)) is not None for s in SCHEDULES)


def test_an_original_that_is_not_functional_is_undecided() -> None:
    program = scheduled("decompose").program
    verdict = verify_schedule(program, program)
    assert verdict.answer == "undecided"
    assert "accumulates" in verdict.reason or "several blocks" in verdict.reason


def test_a_wrong_origin_is_refuted() -> None:
    text = str(scheduled("fuse").module).replace('origin "C"[m, l, k]', 'origin "C"[m, l, 9 - k]'.replace("9 - k", "0"))
    verdict = verify_schedule(read(next(iter(parse(text).ops))), ORIGINAL)  # type: ignore[arg-type]
    assert verdict.answer == "refuted"


def test_the_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    original, good, bad = tmp_path / "original.mlir", tmp_path / "good.mlir", tmp_path / "bad.mlir"
    original.write_text(str(MODULE))
    text = str(scheduled("compute_at").module)
    good.write_text(text)
    bad.write_text(text.replace("combine [add]", "combine [add] accumulate", 1))
    passes = ["-p", f'verify-schedule{{original="{original}"}}']
    assert strata_opt([str(good), *passes]) == 0
    capsys.readouterr()
    assert strata_opt([str(bad), *passes]) == 1
    assert "verify-schedule: @mm_exp_mm: refuted" in capsys.readouterr().err
    assert strata_opt([str(good), "-p", 'verify-schedule{original="none.mlir"}']) == 1


def causal(mask: bool = False) -> Schedule:
    """Causal attention, with a mask or without."""
    q, k, v = (te.placeholder((2, 6, 5), name=name) for name in "QKV")
    given = [q, k, v, *([te.placeholder((6, 6), "i1", name="M")] if mask else [])]
    return Schedule(lowered(te.function("causal", given, [te.nn.attention(*given, causal=True, name="O")])))


WRONG_CONDITIONS = (
    ("cmpi sge", "cmpi slt"),
    ("cmpi sge", "cmpi sgt"),
    ("subi %0, %1", "subi %1, %0"),
    ("%M[i1, k2]", "%M[k2, i1]"),
    ("select %m_1, %6, %7", "select %m_1, %7, %6"),
    ("select %4, %8, %7", "select %4, %6, %7"),
    ("select %4, %8, %7", "select %m_1, %8, %7"),
    ("0xff800000", "0xff000000"),
)
"""What is wrong with the first block that selects by itself."""


@pytest.mark.parametrize("mask", [False, True])
def test_inlined_conditions_are_proved(mask: bool) -> None:
    s = causal(mask)
    s.inline(s.get_block("O.logits"))
    assert str(s.verify()) == "proved"


@pytest.mark.parametrize(("right", "wrong"), WRONG_CONDITIONS)
def test_wrong_conditions_are_refuted(right: str, wrong: str) -> None:
    s = causal(mask=True)
    original = s.program
    s.inline(s.get_block("O.logits"))
    text = str(s.module)
    assert right in text
    changed = parse(text.replace(right, wrong, 1)).body.block.first_op
    assert verify_schedule(read(changed), original).answer == "refuted"  # type: ignore[arg-type]


def test_a_copied_constant_is_the_one_of_its_case() -> None:
    x, r = te.placeholder((4, 4), name="X"), te.reduce_axis(4, "r")
    y = te.compute((4, 4), lambda i, j: te.select(i >= j, 7, x[i, j]), "Y")
    s = Schedule(lowered(te.function("f", [x], [te.compute((4,), lambda i: te.sum(y[i, r], axis=r), "Z")])))
    copy = replace(s.program.blocks["Y"], origin=None)
    assert copy != s.program.blocks["Y"]
    assert str(verify_schedule(s.program.replaced("Y", lambda _: [copy]), s.program)) == "proved"


def test_selects_on_conditions_of_all_kinds_are_proved() -> None:
    answers = Counter[str]()
    for seed in range(40):
        rng = random.Random(seed)
        function = conditions(rng)
        s = Schedule(lowered(function))
        for label in list(s.program.blocks):
            if s.program.blocks[label].reads and not s.program.blocks[label].combiners and rng.random() < 0.7:
                inline_if_legal(s, label)
        assert str(s.verify()) == "proved", seed
        answers[proofs.judged(function, s, rng, seed)] += 1
    assert answers["refuted"] > 10


def inline_if_legal(s: Schedule, label: str) -> None:
    with suppress(ScheduleError):
        s.inline(s.get_block(label))


@pytest.mark.parametrize("twice", [False, True])
def test_programs_that_return_their_inputs_are_proved(twice: bool) -> None:
    """What copies an input into a result is a statement of the original like any other."""
    a, b = (te.placeholder((4, 6), name=name) for name in "AB")
    s = Schedule(lowered(te.function("some", [a, b], [a, te.nn.add(a, b), *([a] if twice else [])])))
    labels = ["copy_A", *(["copy_A.1"] if twice else [])]
    assert list(s.program.blocks) == ["add", *labels] and str(s.verify()) == "proved"
    for label in labels:
        s.reorder(*reversed(s.get_loops(s.get_block(label))))
    assert str(s.verify()) == "proved"
    wrong = str(s.module).replace("(%a = %A[i0, i1]", "(%a = %B[i0, i1]", 1)
    assert not verify_schedule(read(parse(wrong).body.block.first_op), read(parse(str(s.original)).body.block.first_op))


def retyped(program: Program, buffer: str, element: Attribute) -> Program:
    """The program with another element type of one temporary."""
    held = program.buffers[buffer]
    return program.replaced((buffer,), lambda _: [Alloc(replace(held, element=element))])


def judged(text: str, s: Schedule) -> str:
    wrong, original = (read(next(iter(parse(t).ops))) for t in (text, str(s.original)))  # type: ignore[arg-type]
    return verify_schedule(wrong, original).answer


def test_a_maximum_without_sign_is_not_one_with_sign() -> None:
    a, k = te.placeholder((4, 4), "u8", name="A"), te.reduce_axis(4, "k")
    greatest = te.compute((4,), lambda i: te.max(a[i, k], axis=k), name="U")
    s = Schedule(lowered(te.function("f", [a], [greatest])))
    s.cache_write(s.get_block("U"))
    assert s.verify()
    assert verify_schedule(retyped(s.program, "U.local", i8), read(s.original.body.block.first_op)).answer == "refuted"


def test_index_values_without_sign_are_not_those_with_sign() -> None:
    table, index = te.placeholder((250, 3), name="T"), te.placeholder((5,), "u8", name="I")
    rows = te.gather((5, 3), lambda i, d: table.at(index[i], d), name="Y", otherwise=0)
    s = Schedule(lowered(te.function("f", [table, index], [rows])))
    s.cache_read(s.get_block("Y"), "I")
    assert s.verify()
    assert verify_schedule(retyped(s.program, "I.local", i8), read(s.original.body.block.first_op)).answer == "refuted"


def test_a_changed_number_of_outputs_is_refuted() -> None:
    s = scheduled("compute_at")
    assert judged(str(s.module).replace("outputs = 1", "outputs = 2"), s) == "refuted"


def test_a_value_that_nobody_follows_is_undecided() -> None:
    """A block without origin that computes what might be right is neither proved nor refuted."""
    s = Schedule(lowered(mm_exp_mm()))
    text = str(s.module)
    without = re.sub(r' origin "D"\[[^]]*\]', "", text)
    assert without != text and judged(without, s) == "undecided"
