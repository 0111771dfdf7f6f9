"""Search spaces: sketches by the rules, features without building, and that both agree with what is applied."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
import pytest

from compiler import lower, te
from compiler.autotune.task import SearchTask
from compiler.pipeline.source import parse
from compiler.recipes.rules import RULES, Alternative, Draft
from compiler.schedule import Schedule, replay
from compiler.space.cpu_features import REASONS, WIDTH, extract
from compiler.space.derivation import derive, preferred
from compiler.space.space import SketchSpace, work
from compiler.space.template import from_template
from compiler.support.errors import InputError, ScheduleError
from compiler.types.machines import Machine
from tests.programs import applied, matmul
from tests.sample import some

MACHINE = Machine("test", "", "", 2, 512, 32, 32 << 10, 1 << 20, 8 << 20)


def _chain(m: int, k: int, n: int, p: int) -> te.Function:
    a, b, e = (te.placeholder(s, "f32", name=x) for s, x in (((m, k), "A"), ((k, n), "B"), ((n, p), "E")))
    return te.function("f", [a, b, e], te.nn.matmul(te.nn.exp(te.nn.matmul(a, b)), e))


_matmul = partial(matmul, name="f", output="matmul")


def _small(name: str) -> te.Function:
    from compiler.bench.workloads import find

    return find(name).function()


PROGRAMS = {
    "convolution": _small("conv:20x9x9x40"),
    "gradient": _small("conv_grad_weight:3x5x9x9"),
    "gradient in steps": _small("conv_grad_weight_steps:3x5x9x9"),
    "attention": _small("attention:2x40x20"),
    "norm": _small("layernorm:20x100"),
    "swish": _small("swish:20x100"),
    "layers": _small("mlp:20x30x40x10"),
    "matmul": _matmul(96, 128, 80),
    "ragged": _matmul(37, 131, 67),
    "narrow": _matmul(64, 9, 40),
    "chain": _chain(48, 40, 64, 80),
    "softmax": applied(te.nn.softmax, (33, 100)),
    "pool": applied(partial(te.nn.max_pool2d, kernel=3, stride=2, padding=1), (2, 5, 17, 17)),
    "integers": _matmul(32, 64, 48, "i8"),
}


def _space(program: te.Function, threads: int = 1) -> tuple[Schedule, SketchSpace]:
    schedule = Schedule(lower(program))
    return schedule, SketchSpace(derive(schedule, RULES, MACHINE, threads).sketches, MACHINE)


@pytest.mark.parametrize("name", some(list(PROGRAMS)))
def test_preferred_is_the_first_sketch(name: str) -> None:
    schedule, space = _space(PROGRAMS[name])
    assert str(preferred(schedule, RULES, MACHINE).draft.schedule.script) == space.script(space.defaults[0])


MOST = 5
"""How many sketches of a space are looked at: the preferred one, and others at random."""


def _some(space: SketchSpace, draws: random.Random) -> list[int]:
    others = range(1, len(space.sketches))
    return [0, *draws.sample(others, min(MOST - 1, len(others)))]


@pytest.mark.parametrize(
    ("name", "threads"), some([("chain", 2), *((name, 1) for name in PROGRAMS), ("convolution", 2)])
)
def test_candidates_are_what_their_features_say_and_are_proved(name: str, threads: int) -> None:
    """The default of a sketch applies and is proved; a random candidate is, or a primitive refuses it. The features of
    both are those of the program that is applied."""
    schedule, space = _space(PROGRAMS[name], threads)
    draws, useful = random.Random(7), work(schedule.program)
    for number in _some(space, draws):
        sketch = space.sketches[number]
        drawn = tuple(draws.randrange(n) for n in sketch.sizes)
        actual = space.features(number, np.array([sketch.recorded_positions, drawn]).reshape(2, len(sketch.sizes)))
        assert actual.values.shape == (2, WIDTH)
        for positions, reason, values in zip(
            (sketch.recorded_positions, drawn), actual.reasons, actual.values, strict=True
        ):
            try:
                applied = replay(parse(space.script((number, positions))), schedule.original)
            except ScheduleError:
                assert positions == drawn, "a default applies"
                continue
            assert applied.verify().answer == "proved"
            concrete = extract(applied.program, useful, MACHINE)
            assert np.allclose(np.array(concrete.features, np.float32), values, rtol=1e-5)
            bad = [REASONS[n] for n, holds in enumerate(concrete.infeasible, 1) if holds]
            assert (bad[0] if bad else "") == REASONS[reason]


def test_the_program_as_written_is_always_a_candidate() -> None:
    _, space = _space(PROGRAMS["matmul"])
    assert space.sketches[-1].name == "as written"
    assert space.sizes[-1] == ()


def test_a_script_with_decisions_says_its_positions() -> None:
    """Opening a recorded script and deciding as recorded gives the script back."""
    schedule, space = _space(PROGRAMS["chain"])
    for sketch in space.sketches:
        text = sketch.text(sketch.recorded_positions)
        assert "decision" not in str(sketch.script)
        assert text.count("decision") == len(sketch.choices)
        assert str(replay(sketch.decided(sketch.recorded_positions), schedule.original).script) == text


def test_a_rule_of_ones_own() -> None:
    def unrolled(draft: Draft, label: str):
        """Unroll the innermost loop of whatever is left."""

        def apply(draft: Draft):
            s = draft.schedule
            s.unroll(s.get_loops(s.get_block(label))[-1])
            return [label]

        yield Alternative("unrolled", apply)

    schedule = Schedule(lower(PROGRAMS["matmul"]))
    names = [s.name for s in derive(schedule, (unrolled,), MACHINE).sketches]
    assert names == ["matmul: unrolled", "as written"]


def test_what_a_primitive_refuses_is_dropped_and_said() -> None:
    def wrong(draft: Draft, label: str):
        """Vectorize a reduction."""

        def apply(draft: Draft):
            s = draft.schedule
            s.vectorize(s.get_loops(s.get_block(label))[-1])
            return [label]

        yield Alternative("vectorized", apply)

    schedule = Schedule(lower(PROGRAMS["matmul"]))
    derived = derive(schedule, (wrong,), MACHINE)
    assert [s.name for s in derived.sketches] == ["as written"]
    assert len(derived.dropped) == 1 and derived.dropped[0].startswith("vectorized: vectorize: ")


TEMPLATE = """
transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "T"
  %m, %n, %k = sched.get_loops %c : !sched.loop, !sched.loop, !sched.loop
  %t = sched.sample_categorical [2, 4, 8] probabilities [0.25, 0.5, 0.25]
  %u = sched.sample_categorical [2, 4] probabilities [0.5, 0.5] decision 1
  %m0, %m1, %m2 = sched.split %m by [-1, %t, %u] : !sched.loop, !sched.loop, !sched.loop
  sched.parallel %m0
  transform.yield
}
"""


def test_a_template_is_a_space() -> None:
    schedule = Schedule(lower(_chain(48, 40, 64, 80)))
    name = next(iter(schedule.program.blocks))
    sketches = from_template(parse(TEMPLATE.replace('"T"', f'"{name}"')), schedule, RULES, MACHINE).sketches
    assert [s.name for s in sketches] == ["template", "as written"]
    assert sketches[0].sizes == (3,), "what the template decides is no choice"
    text = sketches[0].text((2,))
    assert "decision 2" in text and "decision 1" in text
    replay(sketches[0].decided((0,)), schedule.original)


def test_a_template_leaves_blocks_to_the_rules() -> None:
    schedule = Schedule(lower(_chain(48, 40, 64, 80)))
    first, _, last = schedule.program.blocks
    auto = f'  %d = sched.get_block %f "{last}"\n  sched.auto %d\n  transform.yield'
    script = parse(TEMPLATE.replace('"T"', f'"{first}"').replace("  transform.yield", auto))
    sketches = from_template(script, schedule, RULES, MACHINE).sketches
    assert len(sketches) > 3
    assert all(s.name.startswith(f"{last}: ") for s in sketches[:-1])
    for sketch in sketches:
        assert "sched.auto" not in str(sketch.script)
        assert replay(sketch.decided(sketch.recorded_positions), schedule.original).verify().answer == "proved"


def test_a_template_is_a_python_function() -> None:
    f = _chain(48, 40, 64, 80)
    schedule = Schedule(lower(f))
    first, _, last = schedule.program.blocks

    def template(s: Schedule) -> None:
        m, _, _ = s.get_loops(first)
        t = s.sample_categorical([2, 4, 8], [0.25, 0.5, 0.25])
        u = s.sample_categorical([2, 4], [0.5, 0.5], decision=1)
        rows, _, _ = s.split(m, [None, t, u])
        s.parallel(rows)

    written = parse(TEMPLATE.replace('"T"', f'"{first}"'))
    expected = from_template(written, schedule, RULES, MACHINE).sketches
    found = SearchTask(f, threads=1, machine=MACHINE, template=template).space.sketches
    assert [(s.name, s.sizes) for s in found] == [(s.name, s.sizes) for s in expected]
    assert found[0].text((2,)).count("sched.") == expected[0].text((2,)).count("sched.")
    both = SearchTask(f, threads=1, machine=MACHINE, template=lambda s: (template(s), s.auto(last)))
    assert {s.name.split(":")[0] for s in both.space.sketches} == {last, "as written"}
    assert "sched.auto" in str(both.template), "the rules deal with it later"


def test_a_template_draws_until_its_steps_are_legal() -> None:
    def template(s: Schedule) -> None:
        outer, *_ = s.split(s.get_loops("C")[0], [3, s.sample_categorical([1, 2, 32])])  # 3 and 6 are below 64
        s.parallel(outer)

    a, k = te.placeholder((64, 64), name="A"), te.reduce_axis(64, "k")
    f = te.function("f", [a], te.compute((64, 64), lambda i, j: te.sum(a[i, k] * a[k, j], k), name="C"))
    assert "sched.parallel" in str(SearchTask(f, threads=1, machine=MACHINE, template=template).template)
    with pytest.raises(ScheduleError, match="depend on each other"):
        SearchTask(f, threads=1, machine=MACHINE, template=lambda s: s.parallel("C.k"))
    with pytest.raises(InputError, match="expected a module, its text, or a function of a Schedule"):
        SearchTask(f, threads=1, machine=MACHINE, template=7)  # type: ignore[arg-type]


ONCE = "an `if` on a choice is decided once, when the template is written"


def _if_on_its_value(s: Schedule) -> None:
    if s.value(s.sample_categorical([0, 1], name="way")):
        s.parallel(s.get_loops("C")[0])


def _if_on_the_choice(s: Schedule) -> None:
    if s.sample_categorical([0, 1], name="way"):
        s.parallel(s.get_loops("C")[0])


def _if_on_an_extent(s: Schedule) -> None:
    rows, _ = s.split(s.get_loops("C")[0], [None, s.sample_categorical([2, 4, 8, 16, 32])])
    if s.extent(rows) > 4:
        s.parallel(rows)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (_if_on_its_value, "a choice has no value while a template is written"),
        (_if_on_the_choice, "the choice 'way' is used by no step"),
        (_if_on_an_extent, "the steps of the template differ from draw to draw of its choices"),
    ],
)
def test_an_if_on_a_choice_is_refused_in_words(template: Callable[[Schedule], None], said: str) -> None:
    """It would be decided once, silently, by what was drawn."""
    a, k = te.placeholder((64, 64), name="A"), te.reduce_axis(64, "k")
    f = te.function("f", [a], te.compute((64, 64), lambda i, j: te.sum(a[i, k] * a[k, j], k), name="C"))
    with pytest.raises(ScheduleError, match=f"{said}: {ONCE}"):
        SearchTask(f, threads=1, machine=MACHINE, template=template)


def test_an_open_choice_that_nothing_uses_is_refused_in_a_text() -> None:
    schedule = Schedule(lower(_chain(48, 40, 64, 80)))
    first = next(iter(schedule.program.blocks))
    unused = TEMPLATE.replace('"T"', f'"{first}"').replace(
        "transform.yield", "%unused = sched.sample_categorical [1, 2] probabilities [0.5, 0.5]\n  transform.yield"
    )
    with pytest.raises(ScheduleError, match="the choice 'unused' is used by no step"):
        from_template(parse(unused), schedule, RULES, MACHINE)


def test_a_choice_that_no_parameter_takes_is_said_by_its_name() -> None:
    s = Schedule(lower(_chain(48, 40, 64, 80)))
    first = next(iter(s.program.blocks))
    ahead = s.sample_categorical([1, 2], name="ahead")
    loop = s.get_loops(first)[-1]
    with pytest.raises(ScheduleError, match="ahead is the choice 'ahead', expected int: only sizes and loops may be"):
        s.prefetch(loop, "a0", ahead=ahead)  # type: ignore[arg-type]


def test_a_rule_of_others_that_adds_nothing_is_said() -> None:
    """Ours are refused here and there all the time; who adds one has to know."""

    def backwards(draft: Draft, label: str) -> Iterator[Alternative]:
        def apply(draft: Draft) -> list[str]:
            draft.schedule.parallel(draft.schedule.get_loops(label)[-1])
            return [label]

        yield Alternative("backwards", apply)

    f = te.function("f", [a := te.placeholder((64, 64), name="A")], te.nn.matmul(a, a, name="C"))
    task = SearchTask(f, threads=1, machine=MACHINE, rules=(backwards, *RULES))
    (said,) = task.derived.unused
    assert said.startswith("the rule backwards adds nothing: ") and "depend on each other" in said
    assert SearchTask(f, threads=1, machine=MACHINE).derived.unused == ()


def test_a_template_that_does_not_apply() -> None:
    schedule = Schedule(lower(PROGRAMS["softmax"]))
    with pytest.raises(ScheduleError, match="there is none"):
        from_template(parse(TEMPLATE), schedule, RULES, MACHINE)


def test_features_do_not_depend_on_what_was_asked_before() -> None:
    """Nothing that an analysis remembers of one candidate is told of another: here of tiles that overrun their loop."""
    function = applied(lambda x, w: te.nn.conv2d(x, w, stride=2), (1, 12, 13, 13), (40, 12, 1, 1), inputs="XW")

    collected = []
    for seed in (None, 1):
        space = SearchTask(function, threads=1).space
        number = next(n for n, sketch in enumerate(space.sketches) if "over rows of pixels" in sketch.name)
        every = np.array(list(product(*map(range, space.sizes[number]))))
        order = range(len(every)) if seed is None else np.random.default_rng(seed).permutation(len(every))
        told = {int(n): space.features(number, every[[n]]) for n in order}
        collected.append([(*told[n].reasons.tolist(), *told[n].values[0].tolist()) for n in range(len(every))])
    assert collected[0] == collected[1]
