"""Scripts that include recipes by name: they have the same steps as the search's own."""

import random
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from compiler.database.outcome import Outcome
from compiler.database.replay import plan_record, replay
from compiler.driver.building import source_of
from compiler.recipes.rules import FORMER_NAMES, GPU_RULES, RULES
from compiler.report.importance import decisions_of
from compiler.schedule.python import as_python
from compiler.space.derivation import derive
from compiler.space.includes import version_of, with_includes
from compiler.support import plugins
from compiler.targets.cuda.machines import representative_gpu
from compiler.types.machines import MACHINES, Gpu, Machine
from strata import Schedule, SearchTask, te
from strata.database import Record
from strata.errors import ScheduleError
from strata.schedule import outline

AVX2, H100 = MACHINES["avx2"], representative_gpu("sm_90")


def product(m: int = 24, n: int = 40, k: int = 36) -> te.Function:
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    r = te.reduce_axis(k, "k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return te.function("product", [A, B], te.nn.exp(C))


def convolution() -> te.Function:
    X, W = te.placeholder((1, 8, 14, 14), name="X"), te.placeholder((16, 8, 3, 3), name="W")
    return te.function("convolution", [X, W], te.nn.relu(te.nn.conv2d(X, W, padding=1)))


def softmax() -> te.Function:
    X = te.placeholder((16, 100), name="X")
    return te.function("softmax", [X], te.nn.softmax(X))


def chain() -> te.Function:
    A, B, C = (te.placeholder(shape, name=n) for shape, n in (((32, 48), "A"), ((48, 32), "B"), ((32, 64), "C")))
    return te.function("chain", [A, B, C], te.nn.matmul(te.nn.exp(te.nn.matmul(A, B)), C))


@pytest.mark.parametrize(
    ("program", "machine"),
    [(product, AVX2), (chain, AVX2), (convolution, AVX2), (softmax, AVX2), (product, H100)],
    ids=lambda value: getattr(value, "__name__", value.__class__.__name__),
)
def test_a_short_script_has_the_steps_of_the_candidate(program: object, machine: Machine | Gpu) -> None:
    function, draw = program(), random.Random(7)  # type: ignore[operator]
    original = Schedule(function)
    sketches = derive(original, RULES if machine is AVX2 else GPU_RULES, machine, 2).sketches
    assert sum(bool(sketch.inclusions) for sketch in sketches) >= len(sketches) - 1  # but for the program as written
    for sketch in sketches[:3]:
        script = sketch.decided([draw.randrange(size) for size in sketch.sizes])
        short = str(with_includes(script, sketch.inclusions, machine, 2))
        try:
            steps = Schedule(function).apply(str(script))
        except ScheduleError as error:
            with pytest.raises(ScheduleError, match=error.reason.split("(")[0].split("[")[0][:20]):
                Schedule(function).apply(short)
            continue
        again = Schedule(function).apply(short)
        assert str(again) == str(steps)
        assert len(short.splitlines()) <= 7 + 2 * len(sketch.inclusions) or not sketch.inclusions
        assert str(with_includes(again.script, again.inclusions, machine, 2)) == short


def test_a_recipe_is_included_from_python() -> None:
    s = Schedule(product())
    s.include("packed_product", "C", {"rows": 4, "vectors": 2})
    assert "i.2 = 4 unrolled" in outline(s.program) and s.verify()
    assert len(s.inclusions) == 1 and not s.inclusions[0].changed
    t = Schedule(product())
    t.include(
        "packed_product", t.get_block("C"), {"rows": 5}, way="gebp b, applied to tiles"
    )  # no option of the search
    assert "i.2 = 5 unrolled" in outline(t.program) and t.verify()


def test_a_former_name_includes_the_recipe_that_has_its_ways() -> None:
    x, w = te.placeholder((1, 8, 9, 9), name="X"), te.placeholder((8, 1, 3, 3), name="W")
    s = Schedule(te.function("f", [x, w], te.nn.depthwise_conv2d(x, w, name="C")))
    t = s.fork()[0]
    s.include("vectors_of_pixels", "C", way="by vectors of pixels")
    t.include("convolution", "C", way="by vectors of pixels")
    assert outline(s.program) == outline(t.program) and s.verify()
    assert {*FORMER_NAMES.values()} <= {rule.__name__ for rule in RULES}
    assert not {*FORMER_NAMES} & {rule.__name__ for rule in RULES}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda s: s.include("packed_produkt", "C"),
            "there is no recipe 'packed_produkt'; a plugin that has it is not loaded; did you mean 'packed_product'",
        ),
        (lambda s: s.include("packed_product", "exp"), "block 'exp': the recipe packed_product is not for it"),
        (lambda s: s.include("packed_product", "D"), "block 'D': there is none"),
        (lambda s: s.include("packed_product", "C", way="all"), "no way 'all' here .it has 'gebp unpacked"),
        (lambda s: s.include("packed_product", "C", {"row": 4}), "packed_product: there is no size 'row'"),
        (lambda s: s.include("packed_product", "C", {"rows": "x"}), "'x' is no size"),
        (lambda s: s.include("packed_product", "C", {"rows": [2, 2]}), "is no size of sched.sample_categorical"),
    ],
)
def test_what_cannot_be_included_is_refused(call: object, said: str) -> None:
    s = Schedule(product())
    with pytest.raises(ScheduleError, match=said):
        call(s)  # type: ignore[operator]
    assert s.program is s.unscheduled


def test_a_refused_recipe_leaves_no_trace_in_the_next() -> None:
    s, t = Schedule(chain()), Schedule(chain())
    first, second = (block for block in s.program.blocks if s.program.blocks[block].combiners)
    for schedule in (s, t):
        schedule.include("packed_product", first)
    with pytest.raises(ScheduleError, match="there is no size 'row'"):
        s.include("packed_product", second, {"row": 4})
    for schedule in (s, t):
        schedule.include("packed_product", second)
    assert str(s) == str(t) and s.verify()


SCRIPT = """
transform.named_sequence @schedule(%%f: !transform.any_op {transform.readonly})%s {
  %%C = sched.get_block %%f "C"
  sched.include @packed_product(%%C) with {rows = 4 : i64}%s
  transform.yield
}
"""


def test_primitives_and_recipes_stand_in_one_script() -> None:
    text = (SCRIPT % ("", "")).replace("  transform.yield", '  %e = sched.get_block %f "exp"\n  transform.yield')
    s = Schedule(product()).apply(text)
    assert "i.2 = 4 unrolled" in outline(s.program) and s.verify()
    s = Schedule(product())
    s.parallel("exp.i0")
    s.include("packed_product", "C", way="gebp unpacked")
    assert s.verify() and "i0 = 24 parallel" in outline(s.program) and len(s.inclusions) == 1


@pytest.mark.parametrize(
    "facts", ["{l1 = 3 : i64}", "{threads = [1, 2]}", "{registers = 0 : i64}", "{vector_bits = 0 : i64}", "3 : i64"]
)
def test_facts_of_no_machine_are_refused(facts: str) -> None:
    with pytest.raises(ScheduleError, match="has no facts of a machine: l1_bytes"):
        Schedule(product()).apply(SCRIPT % (f" attributes {{sched.machine = {facts}}}", ""))


def test_a_changed_recipe_is_said() -> None:
    task = SearchTask(product(), threads=1)
    script = task.space.script_with_includes(task.space.defaults[0])
    record = Record(task.key, task.name, task.program, script, Outcome("measured", (1e-6,), (1e9,)))
    assert len(record.script.splitlines()) <= 10
    version = replay(record).inclusions[0]
    assert not version.changed and "changed" not in source_of(task, record).verdict
    old = replace(record, script=record.script.replace('version "', 'version "0'))
    assert replay(old).inclusions[0].changed and str(replay(old)) == str(replay(record))
    assert source_of(task, old).verdict.endswith("; changed since it was measured: packed_product")
    assert plan_record(record)[1] == replay(record).program
    assert ("rows", "4") in decisions_of(SCRIPT % ("", ""))
    assert 's.include("packed_product", product0, {"rows": ' in as_python(record.script)


def test_a_template_leaves_the_other_sizes_of_a_recipe_open() -> None:
    task = SearchTask(product(), threads=1, template=SCRIPT % ("", ""))
    sketch = task.derived.sketches[0]
    names = [choice.name for choice in sketch.choices]
    assert "rows" not in names and "vectors" in names
    task = SearchTask(product(), threads=1, template=SCRIPT.replace(" with {rows = 4 : i64}", "") % ("", ""))
    assert "rows" in [choice.name for choice in task.derived.sketches[0].choices]


RULE = '''
from __future__ import annotations

from strata.recipes import Alternative


def by_vectors(draft, label):
    """The innermost loop by vectors."""

    def apply(draft):
        s = draft.schedule
        s.vectorize(s.split(s.get_loops(label)[-1], [None, LANES])[1])
        return [label]

    yield Alternative("by vectors", apply)


def register(registry):
    registry.search_rule(by_vectors)
'''


def test_a_rule_in_a_loaded_file_has_the_version_of_its_text(tmp_path: Path) -> None:
    path, function = tmp_path / "mine.py", elementwise()
    versions, records = [], []
    for lanes in ("4", "8", "8", "4"):  # written within a second, texts of one length
        path.write_text(RULE.replace("LANES", lanes))
        with plugins.loaded([str(path)]):
            versions.append(version_of(RULES[0]))
            schedule = Schedule(function)
            schedule.include("by_vectors", "C", {})
            records.append(str(with_includes(schedule.script, schedule.inclusions, AVX2)))
            changed = [Schedule(function).apply(record).inclusions[0].changed for record in records]
            assert changed == [version != versions[-1] for version in versions]
    assert versions[0] == versions[3] != versions[1] == versions[2]
    assert sha256(b"").hexdigest()[:8] not in versions


def elementwise() -> te.Function:
    A = te.placeholder((12, 16), name="A")
    return te.function("f", [A], te.compute((12, 16), lambda i, j: A[i, j] + 1.0, name="C"))
