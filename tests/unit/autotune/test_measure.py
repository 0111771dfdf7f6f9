"""What measuring is made of, in this process: artefacts, builders, references, checks, samples."""

from __future__ import annotations

import os
import pickle
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, f32, f64

import compiler
from compiler import lower, te
from compiler.analysis.verify.prove import Verdict
from compiler.autotune.measure import timing
from compiler.autotune.measure.builder import BuilderSetup, Built
from compiler.autotune.measure.limits import Limits, Sampling
from compiler.autotune.measure.local import LocalExecutor
from compiler.autotune.measure.measurer import Measurer
from compiler.autotune.measure.runner import Affinity, MeasureJob, Runner, SampleJob, Yardstick
from compiler.autotune.measure.timer import Timer
from compiler.autotune.measure.timing import Clock, YardstickProbe, select_samples, standard_error
from compiler.database.outcome import MEASURED, Outcome
from compiler.dialects.numbers import is_float
from compiler.driver import build_unit
from compiler.driver.reference.cases import (
    Oracle,
    ReferenceCases,
    ReferenceJob,
    compile_strict,
    count_non_finite,
    draw,
    reference,
    scaled,
)
from compiler.driver.reference.retype import floats_of, retyped
from compiler.driver.reference.subject import Subject, ceiling
from compiler.driver.reference.tolerance import Expected, fault, poison
from compiler.interpret import te as evaluator
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import InputError, TargetError
from compiler.support.processes import Death
from compiler.support.worker import Refused
from compiler.targets.cpu import presence
from compiler.targets.cpu.ceilings import ProbeReading
from compiler.targets.cpu.presence import QUIET, Disturbance, Sample
from compiler.types.machines import host
from tests.measuring import NOTHING, matmul, none, quiet, scripts, short_of_a_term, split, subject, with_code  # noqa: F401
from tests.operators import OPERATORS
from tests.operators.catalogue import random_inputs
from tests.programs import applied
from tests.sample import some
from tests.schedules import mm_exp_mm

pytestmark = pytest.mark.usefixtures("quiet")
Array = np.ndarray[Any, Any]


# --- artefacts ------------------------------------------------------------------------------------------------------


def test_an_artefact_is_the_kernel_again() -> None:
    function = mm_exp_mm()
    s = Schedule(lower(function))
    s.parallel(s.get_loops(s.get_block("C"))[0])
    artefact = pickle.loads(pickle.dumps(build_unit(s, threads=2)))
    kernel, direct = artefact.call.load(), compiler.build(s, threads=2)
    inputs = random_inputs(function, 0)
    np.testing.assert_array_equal(kernel(*inputs), direct(*inputs))
    assert (kernel.arguments, kernel.outputs, kernel.threads) == (direct.arguments, direct.outputs, 2)
    assert kernel.policy == "contract" and repr(kernel) == repr(direct)
    with pytest.raises(TargetError, match="no level 'te'"):
        kernel.text("te")


def test_an_artefact_calls_the_mathematics_of_the_process_that_loads_it() -> None:
    function = applied(lambda x: te.compute((37,), lambda i: te.exp(x[i])), (37,), dtype="f64", inputs="x")
    artefact = build_unit(function, policy="strict")
    array = np.linspace(-3, 3, 37)
    np.testing.assert_allclose(artefact.call.load()(array), np.exp(array), rtol=1e-15)


def test_an_artefact_whose_functions_are_missing_is_refused() -> None:
    artefact = build_unit(matmul())
    missing = with_code(artefact, replace(artefact.call.object, declared=("no_such_function",)))
    with pytest.raises(TargetError, match="the module calls 'no_such_function', which is in no library here"):
        missing.call.load()


def test_build_unit_refuses_what_build_refuses() -> None:
    with pytest.raises(TargetError, match="unknown policy 'loose'"):
        build_unit(matmul(), policy="loose")
    with pytest.raises(TargetError, match="expected an integer from 1"):
        build_unit(matmul(), threads=0)


# --- the subject and the builder ------------------------------------------------------------------------------------


def test_a_subject_pickles_as_it_was_stated() -> None:
    stated = subject(matmul(), policy="fast", threads=2, seed=3)
    assert stated.program.name == "product"
    again = pickle.loads(pickle.dumps(stated))
    assert again == stated and "module" not in vars(again)


def rows(m: int, n: int) -> te.Function:
    """exp, a value at a time."""
    return applied(lambda x: te.compute((m, n), lambda i, j: te.exp(x[i, j])), (m, n), inputs="x")


@pytest.mark.parametrize(
    ("function", "limit"),
    [
        (matmul(1024, 1024, 1024), "flops"),
        (matmul(1024, 1024, 1024, "i32"), "flops"),
        (matmul(1024, 1024, 1), "bytes"),
        (rows(4096, 1024), "bytes"),
    ],
)
def test_the_ceiling_is_what_bounds_a_perfect_implementation(function: te.Function, limit: str) -> None:
    assert ceiling(subject(function).program, replace(host(), vector_bits=512)) == limit


def test_a_script_is_built() -> None:
    for level in (str(matmul().module), str(lower(matmul()))):
        actual = BuilderSetup(Subject(level), 0).start()(scripts(matmul(), split)[0])
        assert isinstance(actual, Built) and actual.seconds > 0
        assert actual.artefact.call.interface.name == "product"


def test_an_unproved_schedule_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "verify", lambda self: Verdict("undecided", "the budget is exhausted"))
    actual = BuilderSetup(subject(matmul()), 0).start()(scripts(matmul(), split)[0])
    assert isinstance(actual, Outcome) and actual.kind == "unproved"
    assert actual.reason == "undecided: the budget is exhausted" and actual.build_seconds > 0


def bound(s: Schedule) -> None:
    """Bind a loop to threads that the CPU has not."""
    s.bind(s.get_loops(s.get_block("C"))[0], "block_x")


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        (lambda text: scripts(matmul(), bound)[0], "build", "is bound to"),
        (lambda text: text.replace('"C"', '"D"'), "refused", "step 1: get_block: "),
        (lambda text: text.replace("[-1, 4]", "[2, 4]"), "refused", "step 3: split: "),
        (lambda text: text.replace("sched.split", "sched.cut"), "refused", "the script cannot be read: "),
        (lambda text: "module {", "refused", "the script cannot be read: "),
        (lambda text: str(matmul().module), "refused", "a script is one transform.named_sequence"),
    ],
)
def test_a_script_that_is_not_built_says_why(change: Callable[[str], str], kind: str, reason: str) -> None:
    actual = BuilderSetup(subject(matmul()), 0).start()(change(scripts(matmul(), split)[0]))
    assert isinstance(actual, Outcome) and actual.kind == kind
    assert reason in actual.reason and "\n" not in actual.reason


# --- the reference --------------------------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(("number", "name"), some(enumerate(OPERATORS), 5))
def test_the_reference_is_the_evaluator_in_float64(number: int, name: str) -> None:
    operator = OPERATORS[name]
    dtype = operator.dtypes[number % len(operator.dtypes)]
    function = operator.build(dtype, operator.sample(random.Random(1)))
    inputs = operator.inputs(function, 1)
    actual = Oracle(lower(function), None)(inputs)
    expected = evaluator.evaluate(function.module, inputs, np.float64)
    for exact, right in zip(actual.exact, expected, strict=True):
        if is_float(right.dtype):
            assert exact.dtype == np.float64
            np.testing.assert_allclose(exact, right, rtol=1e-9, atol=1e-11)
        else:
            np.testing.assert_array_equal(exact, right)


def test_literals_beyond_f32_in_a_program_of_f64() -> None:
    """It runs in f32 beside: there they are infinite."""
    function = applied(lambda x: te.compute((3,), lambda i: te.minimum(x[i], 1e300), "Y"), (3,), dtype="f64")
    (exact,) = Oracle(lower(function), None)([np.array([1.0, 2e300, -3.0])]).exact
    np.testing.assert_array_equal(exact, [1, 1e300, -3])


@pytest.mark.parametrize("shape", [(70, 33, 300), (64, 5, 512), (3, 4, 5)])
def test_tiling_the_reference_changes_no_bit(shape: tuple[int, int, int]) -> None:
    function = matmul(*shape)
    inputs = random_inputs(function, 2)
    tiled, plain = compile_strict(lower(function), None), compiler.build(function, policy="strict")
    np.testing.assert_array_equal(tiled(*inputs), plain(*inputs))


def test_the_reference_of_float64_has_the_error_of_float64() -> None:
    function = matmul(dtype="f64")
    oracle = Oracle(lower(function), None)
    inputs = [draw(a, np.random.default_rng(0)) for a in oracle.inputs]
    actual = oracle(inputs)
    assert actual.exact[0] is actual.strict[0]
    assert 1e-16 < actual.errors[0] < 1e-11
    second = compiler.build(function, policy="fast")(*inputs)
    assert fault(second, Expected(actual.strict[0], actual.exact[0], actual.errors[0])) is None


def test_retyping_drops_conversions_and_rounds_constants() -> None:
    function = applied(lambda x: te.compute((4,), lambda i: te.cast(x[i], "f32") * 0.1), (4,), dtype="f16", inputs="x")
    module = lower(function)
    assert "arith.extf" in str(module)
    wide = retyped(module, f64)
    assert floats_of(wide) == {f64} and "arith.extf" not in str(wide)
    assert "arith.extf" in str(module), "the original is untouched"
    assert str(parse(str(wide))) == str(wide)
    narrow = retyped(parse(str(wide).replace("1.000000e-01", "0.1").replace("0.10000000149011612", "0.1")), f32)
    assert floats_of(narrow) == {f32}
    (constant,) = (op for op in narrow.walk() if isinstance(op, ConstantOp))
    assert isinstance(constant.value, FloatAttr) and constant.value.value.data == float(np.float32(0.1))


def test_inputs_are_halved_until_results_are_finite_and_the_check_is_sharp() -> None:
    function = mm_exp_mm(16, 2048, 16, 8)
    module = lower(function)
    oracle = Oracle(module, None)
    standard = [draw(a, np.random.default_rng(0)) for a in oracle.inputs]
    assert count_non_finite(oracle.strict_results(standard)), "exp of standard normal sums is infinite"
    actual = reference(Subject(str(module)))
    case = actual.cases[0]
    scale = case.inputs[0].std()
    assert 2**-6 < scale < 0.3
    assert all(np.isfinite(e.exact).all() and np.isfinite(e.strict).all() for c in actual.cases for e in c.expected)
    again = reference(Subject(str(module)))
    for left, right in zip(actual.cases, again.cases, strict=True):
        for a, b in zip(left.inputs, right.inputs, strict=True):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(actual.cases[0].inputs[0], actual.cases[1].inputs[0])


def test_a_program_that_is_never_finite_has_a_reference() -> None:
    function = applied(lambda x: te.compute((50,), lambda i: te.log(x[i])), (50,), inputs="x")
    (expected,) = reference(subject(function)).cases[0].expected
    assert 0 < np.isnan(expected.strict).sum() < 50
    assert fault(expected.strict.copy(), expected) is None
    assert fault(np.full(50, np.nan, np.float32), expected) is not None


def test_a_program_without_outputs_is_refused() -> None:
    text = str(lower(matmul())).replace("attributes {outputs = 1 : i64} ", "")
    with pytest.raises(InputError, match="@product has no outputs: nothing says what is right"):
        reference(Subject(text))


# --- the check ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["strict", "contract", "fast"])
def test_a_missing_term_of_a_thousand_is_wrong_and_another_order_is_right(policy: str) -> None:
    function = matmul()
    actual = reference(subject(function))
    s = Schedule(lower(function))
    c = s.get_block("C")
    _, inner = s.split(s.get_loops(c)[2], [None, 8])
    s.rfactor(c, inner)
    s.vectorize(inner)
    for case in actual.cases:
        (expected,) = case.expected
        assert fault(compiler.build(s, policy=policy)(*case.inputs), expected) is None
        wrong = fault(compiler.build(matmul(terms=999), policy=policy)(*case.inputs), expected)
        assert wrong is not None and "of 63 elements, at [0, 0] " in wrong


def expectation(own: Any, exact: Any, worst: float = 0.0, dtype: str = "f4") -> Expected:
    return Expected(np.asarray(own, dtype), np.asarray(exact, "f8" if dtype == "f4" else dtype), worst)


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("found", "own", "exact", "right"),
    [
        (1.0, 1.0, 1.0, True),
        (1.0 + 15 * 2.0**-23, 1.0, 1.0, True),
        (1.0 + 18 * 2.0**-23, 1.0, 1.0, False),
        (INF, INF, INF, True),
        (-INF, INF, INF, False),
        (NAN, NAN, NAN, True),
        (NAN, INF, INF, False),
        (1.0, NAN, NAN, False),
        (INF, INF, 1e39, True),
        (NAN, 1.0, 1.0, False),
        (INF, 1.0, 1.0, False),
        (NAN, NAN, 2.0, True),
        (2.0, NAN, 2.0, True),
    ],
)
def test_when_a_float_is_right(found: float, own: float, exact: float, right: bool) -> None:
    assert (fault(np.asarray([found], "f4"), expectation([own], [exact])) is None) == right


def test_integers_are_exact_and_may_fall_as_either_where_floats_decide() -> None:
    expected = expectation([3, 5], [3, 6], dtype="i4")
    assert fault(np.asarray([3, 5], "i4"), expected) is None
    assert fault(np.asarray([3, 6], "i4"), expected) is None
    assert fault(np.asarray([4, 5], "i4"), expected) == "1 of 2 elements, at [0] 4 for 3"


@pytest.mark.parametrize(
    "expected",
    [
        expectation([1.0, NAN, INF], [1.0, NAN, INF]),
        expectation([0, -1, 7], [0, -1, 7], dtype="i4"),
        expectation([0, 255, 7], [0, 255, 7], dtype="u1"),
        expectation([True, False, True], [True, False, True], dtype="?"),
    ],
    ids=["f4", "i4", "u1", "bool"],
)
def test_poison_is_wrong_everywhere(expected: Expected) -> None:
    out = expected.strict.copy()
    assert fault(out, expected) is None
    poison(out, expected)
    actual = fault(out, expected)
    assert actual is not None and actual.startswith("3 of 3 elements")


# --- the runner and its samples -------------------------------------------------------------------------------------


class Steady:
    """A ceiling of one operation a second; it keeps the seconds of its probes."""

    def __init__(self) -> None:
        self.probed: list[float] = []

    def probe(self, seconds: float) -> ProbeReading:
        self.probed.append(seconds)
        return ProbeReading(1.0, QUIET)


FEW = Sampling(min_seconds=0.0, min_samples=2, max_samples=4, spread=1e9, seconds=1e9)


@pytest.fixture(scope="module")
def cases() -> ReferenceCases:
    return reference(subject(matmul()))


def test_a_runner_checks_and_measures(cases: ReferenceCases) -> None:
    ceiling = Steady()
    runner = Runner(replace(cases, work=None), Clock(ceiling, FEW), random.Random(0))
    artefact = build_unit(matmul())
    outcome = runner(MeasureJob(artefact))
    assert outcome.ok and len(outcome.seconds) == 2 and outcome.rates == (1.0, 1.0)
    assert len(ceiling.probed) == 2 and outcome.disturbance is not None and outcome.disturbance.repeated == 0
    assert len(runner(SampleJob(artefact)).seconds) == 1
    assert runner(MeasureJob(short_of_a_term(artefact))).kind == "wrong"
    assert runner(SampleJob(NOTHING(artefact))).kind == "wrong"
    missing = with_code(artefact, replace(artefact.call.object, declared=("no_such_function",)))
    assert runner(MeasureJob(missing)).kind == "build"


@pytest.mark.parametrize(("spread", "count"), [(1e9, 2), (-1.0, 4)])
def test_samples_are_taken_until_the_median_is_known(spread: float, count: int) -> None:
    clock = Clock(Steady(), replace(FEW, spread=spread))
    assert len(clock.samples(lambda: None, 1.0).selected) == count


def test_few_samples_of_a_busy_machine_say_less(monkeypatch: pytest.MonkeyPatch) -> None:
    for away, count in ((0.0, 3), (0.05, 6)):
        taken = Sample(1.0, away)
        monkeypatch.setattr(timing, "time_calls", lambda *given, taken=taken: taken)
        clock = Clock(Steady(), replace(FEW, min_samples=3, max_samples=12))
        assert len(clock.samples(lambda: None, 1.0).selected) == count


def test_no_sample_begins_after_the_seconds() -> None:
    assert len(Clock(Steady(), replace(FEW, seconds=0.0)).samples(lambda: None, 1.0).selected) == 1


def test_a_sample_is_as_many_calls_as_last() -> None:
    calls: list[int] = []
    clock = Clock(Steady(), replace(FEW, min_seconds=1e-3))
    assert clock.calls(lambda: calls.append(0), 2e-3) == 1 and not calls
    assert clock.calls(lambda: calls.append(0), 1e-6) > 1 and len(calls) == 1
    clock.sample(lambda: calls.append(0), 5)
    assert len(calls) == 6
    replace(clock, threads=2).sample(lambda: calls.append(0), 5)
    assert len(calls) == 12, "one wakes the threads"


def test_the_standard_error_of_a_median() -> None:
    assert standard_error([2.0, 2.0, 2.0]) == 0
    random = np.random.default_rng(0)
    medians = [float(np.median(random.normal(10, 1, 25))) for _ in range(500)]
    said = np.mean([standard_error(list(random.normal(10, 1, 25))) for _ in range(500)])
    assert 0.7 < said / (np.std(medians) / 10) < 1.3


class Noted:
    """A pool that notes what it is asked, and gives samples of a call of a second beside other rates."""

    def __init__(self, notes: list[str], *rates: float) -> None:
        self.notes, self.rates = notes, iter(rates)

    def settle(self) -> None:
        self.notes.append("settled")

    def map(self, items: Sequence[object], job: object = None) -> Iterator[tuple[int, Outcome]]:
        self.notes.append("timed")
        return iter([(0, Outcome(MEASURED, (1.0,), (next(self.rates),)))])


def unstarted() -> Timer:
    """A timer without processes, which has a reference."""
    actual = Timer.__new__(Timer)
    actual._subject, actual._yardsticks, actual._is_turned, actual._is_referenced = Subject(""), {}, True, True
    return actual


def timer(notes: list[str], *rates: float) -> Timer:
    actual = unstarted()
    actual.__dict__["_runner"] = Noted(notes, *rates)
    actual._quiet = Noted(notes).settle
    return actual


def test_timing_waits_until_no_builder_starts() -> None:
    built = [Built(build_unit(matmul()), 0.0)]
    for act in (lambda p: list(p.run(built)), lambda p: p.compare(built, 1)):
        notes: list[str] = []
        act(timer(notes, 1.0))
        assert notes == ["settled", "timed"]


class Events:
    """An executor that notes what it does; scripts named `bad` cannot be built."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def build(self, scripts: Sequence[str]) -> Iterator[tuple[int, Built | Outcome]]:
        for number, script in reversed(list(enumerate(scripts))):
            self.events.append(f"build {script}")
            yield number, Outcome("build", reason="planted") if script == "bad" else Built(script, 0.0)

    def run(self, candidates: Sequence[Built]) -> Iterator[tuple[int, Outcome]]:
        for number, built in enumerate(candidates):
            self.events.append(f"time {built.artefact}")
            yield number, Outcome(MEASURED, (1.0,), (1.0,))

    def close(self) -> None:
        self.events.append("closed")


@pytest.mark.parametrize("builders", [1, 2, 3])
def test_candidates_are_measured_as_they_are_built(builders: int) -> None:
    """Not after the whole batch; their order is that of the batch, however many are built together."""
    events, said = Events(), list[str]()
    with Measurer(Subject(""), builders=builders, executor=events) as measurer:
        outcomes = list(measurer.measure(["a", "bad", "c", "d"], said.append))
    assert [(n, o.kind) for n, o in outcomes] == [(0, MEASURED), (1, "build"), (2, MEASURED), (3, MEASURED)]
    assert events.events.index("time a") < events.events.index("build d"), "the first number before the last build"
    assert said[0] == f"building {builders} of 4" and said[-1] == "measuring 4 of 4"


def test_no_further_build_begins_after_an_interruption() -> None:
    events = Events()
    with Measurer(Subject(""), builders=1, executor=events) as measurer:
        measuring = measurer.measure(["a", "b", "c"])
        next(measuring)
        measuring.close()
    assert events.events == ["build a", "time a", "closed"]


class Answering:
    """Builders that note their jobs."""

    def __init__(self, *replies: object) -> None:
        self.jobs: list[object] = []
        self.replies = replies

    def map(self, jobs: Sequence[object]) -> Iterator[tuple[int, object]]:
        self.jobs += jobs
        return zip(range(len(jobs)), self.replies, strict=False)


def test_a_builder_computes_the_reference_before_the_first_candidates() -> None:
    """No process of its own loads the compiler for it; a refusal of it is one of the program."""
    executor = LocalExecutor.__new__(LocalExecutor)
    executor.timer = Timer(Subject("f"), Limits())
    try:
        executor.builders = first = Answering(None, "built")
        assert list(executor.build(["script"])) == [(0, "built")] and isinstance(first.jobs[0], ReferenceJob)
        executor.builders = second = Answering("again")
        assert list(executor.build(["script"])) == [(0, "again")] and second.jobs == ["script"], "once a subject"
        executor.timer.switch_subject(Subject("g"))
        executor.builders = Answering(Refused("no outputs"))
        with pytest.raises(InputError, match="no outputs"):
            list(executor.build(["script"]))
        executor.builders = Answering(Death("crash", "SIGSEGV"))
        with pytest.raises(TargetError, match="cannot start: SIGSEGV"):
            list(executor.build(["script"]))
    finally:
        executor.timer.close()


def test_samples_of_a_round_are_beside_one_rate() -> None:
    """The noise of probes does not tell candidates apart."""
    three = [Built(build_unit(matmul()), 0.0)] * 3
    actual = timer([], 4.0, 1.0, 2.0, 8.0, 16.0, 9.0).compare(three, 2)
    assert [outcome.rates for outcome in actual] == [(2.0, 9.0)] * 3 and len({outcome.cost for outcome in actual}) == 1


# --- a machine that is busy -----------------------------------------------------------------------------------------


def test_a_disturbed_sample_is_repeated_with_fewer_calls_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []

    def timed(call: Callable[[], None], calls: int = 1, threads: int = 1) -> Sample:
        taken.append(calls)
        return Sample(1e-3 * calls, 4e-4 * calls if len(taken) < 3 else 0.0, calls=calls)

    moved: list[int] = []
    monkeypatch.setattr(timing, "time_calls", timed)
    actual = Clock(Steady(), FEW, between=lambda: moved.append(0)).sample(lambda: None, 8)
    assert taken == [8, 4, 2] and len(moved) == 2
    assert actual.seconds == pytest.approx(1e-3) and actual.disturbance == Disturbance(
        0.014, pytest.approx(0.0048), 2, 0
    )


def test_a_sample_that_stays_disturbed_counts_the_time_on_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        timing, "time_calls", lambda call, calls=1, threads=1: Sample(3e-3 * calls, 2e-3 * calls, calls=calls)
    )
    actual = Clock(Steady(), FEW).sample(lambda: None, 4)
    assert actual.seconds == pytest.approx(1e-3) and actual.disturbance.used == 1 and actual.disturbance.repeated == 3


def sample(cost: float, away: float = 0.0) -> timing.TimedSample:
    return timing.TimedSample(cost, 1.0, Disturbance(1.0, away, 0, int(away > 0.1)))


def test_clean_samples_count_where_there_are_enough() -> None:
    mixed = select_samples([sample(1.0), sample(9.0, 0.5), sample(1.1), sample(1.2)], 3)
    assert [sample.seconds for sample in mixed.selected] == [1.0, 1.1, 1.2]
    assert (mixed.disturbance.used, mixed.disturbance.repeated) == (0, 1) and mixed.disturbance.share == 0.125
    busy = select_samples([sample(1.0, 0.3), sample(9.0, 0.5), sample(1.1, 0.2), sample(1.2)], 3)
    assert [sample.seconds for sample in busy.selected] == [1.2, 1.1, 1.0] and busy.disturbance.used == 2


def test_a_candidate_above_the_ceiling_is_timed_again(cases: ReferenceCases) -> None:
    """A probe that reads too little is no ceiling."""
    rates = iter([1e-3] * 2 + [1e12] * 9)

    class Broken(Steady):
        def probe(self, seconds: float) -> ProbeReading:
            return ProbeReading(next(rates), QUIET)

    assert cases.limit == "bytes" and cases.work == 4 * (9 * 1000 + 1000 * 7 + 9 * 7)
    runner = Runner(cases, Clock(Broken(), FEW), random.Random(0))
    assert runner(MeasureJob(build_unit(matmul()))).rates == (1e12, 1e12)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system keeps no process to processors")
def test_a_runner_moves_on_to_processors_that_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    stays: list[list[int]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda task: {0, 1, 2, 5})
    monkeypatch.setattr(os, "sched_setaffinity", lambda task, where: stays.append(sorted(where)))
    monkeypatch.setattr("compiler.autotune.measure.runner._tasks", lambda: [0])
    place = Affinity(2)
    place.move()
    place.move()
    assert stays == [[2, 5], [0, 1], [2, 5]]
    alone = Affinity(4)
    alone.move()
    assert stays[3:] == [[0, 1, 2, 5]], "there are no others"


def test_scaling_touches_floats_only() -> None:
    floats, integers = scaled([np.ones(2, np.float32), np.ones(2, np.int8)], 0.5)
    assert floats.dtype == np.float32 and floats[0] == 0.5 and integers[0] == 1


def test_the_scripts_of_the_tests_differ() -> None:
    assert len(set(scripts(matmul(), none, split))) == 2


# --- beside another candidate ---------------------------------------------------------------------------------------


def test_a_yardstick_says_what_the_machine_can_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice as slow a moment halves the rate, so that a cost stays."""
    now = [0.0]
    for name in ("perf_counter", "thread_time"):
        monkeypatch.setattr(presence.time, name, lambda: now[0])
    pace, called = [1e-3], [0]

    def call() -> None:
        now[0] += pace[0]
        called[0] += 1

    yardstick = YardstickProbe(call, cost=8.0)
    assert yardstick.probe(5e-3).rate == pytest.approx(8e3) and called[0] == 1 + 5
    pace[0] = 2e-3
    assert yardstick.probe(2e-3).rate == pytest.approx(4e3) and called[0] == 6 + 2
    assert not yardstick.is_long
    pace[0] = 0.05
    assert YardstickProbe(call, cost=8.0).is_long


def test_candidates_are_timed_beside_the_first_that_is_right_and_a_faster_one(cases: ReferenceCases) -> None:
    chosen = unstarted()
    several = [Built(replace(build_unit(matmul()), seconds=n), 0.0) for n in range(5)]
    for left, outcome in zip(
        several,
        (Outcome("wrong"), *(Outcome(MEASURED, (cost,), (1.0,)) for cost in (10.0, 8.0, 6.0, 5.0))),
        strict=True,
    ):
        chosen._consider(left, outcome)
    assert chosen._yardstick == Yardstick(1, several[3].artefact, 6.0)
    runner = Runner(cases, Clock(Steady(), FEW), random.Random(0))
    outcome = runner(MeasureJob(several[0].artefact, Yardstick(0, several[1].artefact, 6.0)))
    assert outcome.ok and all(rate > 6.0 for rate in outcome.rates), (
        "its rates are a candidate's of cost 6, not the probe's"
    )
    assert runner(SampleJob(several[0].artefact, Yardstick(1, NOTHING(several[1].artefact), 6.0))).ok
    missing = with_code(several[2].artefact, replace(several[2].artefact.call.object, declared=("no_such_function",)))
    assert runner(MeasureJob(several[0].artefact, Yardstick(2, missing, 6.0))).rates == (1.0, 1.0)
