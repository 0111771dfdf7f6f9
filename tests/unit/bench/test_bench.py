"""The benchmark machinery: what is compared, refused, computed and reported; nothing here depends on a time."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from fractions import Fraction
from io import StringIO
from itertools import count
from math import inf
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks import calls
from compiler import build
from compiler.bench import c_loops, contenders, error_bounds, harness, workloads
from compiler.bench.contenders import Contender, Settings
from compiler.bench.harness import Measurement, Plan, Run, fault, measure
from compiler.bench.report import as_json, rows
from compiler.bench.table import cells, table
from compiler.bench.workload import Step, Workload
from compiler.interpret.te import evaluate
from compiler.support.errors import InputError, TargetError
from compiler.targets.cpu import ceilings
from compiler.targets.cpu.ceilings import ProbeReading
from compiler.targets.cpu.presence import QUIET, Sample

Array = np.ndarray[Any, Any]
SMALL = workloads.find("matmul:7x11x13")
SHORT = Plan(rounds=3, seconds=inf)


def fake(name: str, result: Callable[[int, Array], Array]) -> Contender:
    """A contender that gives `result(call, right result)`."""

    def bind(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
        calls = count()

        def step() -> Array:
            out[:] = result(next(calls), workload.expected(inputs).value.astype(np.float32))
            return out

        return step

    return Contender(name, "a fake", lambda: "1.0", bind)


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that disturbs no call, however busy it is."""
    monkeypatch.setattr(Sample, "is_clean", True)


@pytest.fixture
def single_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds of one call, however short it is."""
    monkeypatch.setattr(harness, "BURST", 1e-9)


def right(name: str) -> Contender:
    return fake(name, lambda call, value: value)


def shown(measurement: Measurement) -> str:
    stream = StringIO()
    Console(file=stream, width=120).print(table(measurement))
    return stream.getvalue()


def measured(samples: dict[str, list[float]], *ceilings: float) -> Measurement:
    """What the samples of contenders and the probes of the ceiling come to."""
    output = Measurement(SMALL, Settings(), SHORT, seed=0, rounds=3)
    output.probes += [ProbeReading(rate, QUIET) for rate in ceilings]
    for name, seconds in samples.items():
        output.runs.append(Run(right(name), lambda: np.empty(0), np.empty(0), seconds))
    return output


def test_rows_have_medians_rates_percentages_and_ratios() -> None:
    work = float(SMALL.work)
    ours, rival = rows(measured({"strata": [2.0, 8.0, 4.0], "rival": [1.0] * 3}, 2 * work, work, 4 * work))
    assert (ours.median, ours.minimum, ours.maximum) == (4.0, 2.0, 8.0)
    assert ours.rate == work / 4 and ours.percent == 12.5 and ours.ratio == 1.0
    assert rival.percent == 50.0 and rival.ratio == 0.25, "of the same ceiling"


@pytest.mark.parametrize("seconds", [0.2, 0.9, 1.0])
def test_no_share_of_the_ceiling_is_above_100_percent(seconds: float) -> None:
    """The probes read a half of what the machine can do; one of them more."""
    work = float(SMALL.work)
    measurement = measured({"strata": [2.0], "rival": [seconds]}, work / 2, work / 2, work / 0.9)
    percents = [row.percent for row in rows(measurement)]
    if seconds < 0.5:
        assert percents == [None, None] and "no ceiling, FMA in registers: its probe was slower" in shown(measurement)
        assert as_json([measurement])["results"][0]["ceiling"] is None
    else:
        assert percents == pytest.approx([45.0, 90.0 / seconds]), "of the best probe, for both"
    assert "%" not in "".join(cell for row in rows(measurement) for cell in cells(row))


def test_a_ceiling_below_a_contender_is_probed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = iter([1.0, 1.0, 1.0, 1.0, 1.0, 1e15, 1.0])
    monkeypatch.setattr(ceilings.Arithmetic, "probe", lambda self, seconds: ProbeReading(next(actual), QUIET))
    measurement = measure(SMALL, [right("strata")], plan=SHORT)
    assert [probe.rate for probe in measurement.probes] == [1.0] * 4 + [1e15]
    assert all(row.percent is not None and row.percent < 1 for row in rows(measurement))


@pytest.mark.parametrize("stays", [False, True])
def test_a_disturbed_call_is_repeated_and_does_not_count(stays: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each second call is disturbed, or all are."""
    calls = count()
    monkeypatch.setattr(harness, "time_calls", lambda call, *remaining: taken_by(call, next(calls), stays))
    monkeypatch.setattr(harness, "BURST", 1e-3)
    monkeypatch.setattr(Sample, "is_clean", property(lambda taken: taken.share < 0.1))
    measurement = measure(SMALL, [right("strata")], plan=SHORT)
    run = measurement.runs[0]
    assert measurement.calls == 1 and run.samples == [2e-3 if stays else 1e-3] * 3
    assert run.disturbance.used == (3 if stays else 0) and run.disturbance.repeated == (9 if stays else 3)
    said = f"the machine was busy: off the processor for {run.disturbance.share:.0%} of the measured time, "
    assert said in " ".join(shown(measurement).split())
    (entry,) = as_json([measurement])["results"][0]["contenders"]
    assert entry["disturbance"]["away"] == run.disturbance.share


def taken_by(call: Callable[[], None], number: int, stays: bool) -> Sample:
    """What a call takes: a millisecond, twice as long where it is disturbed. The first two warm up."""
    call()
    disturbed = number > 1 and (stays or number % 2 == 0)
    return Sample(2e-3, 1e-3) if disturbed else Sample(1e-3)


def test_ratios_can_be_to_another_contender_and_are_absent_without_it() -> None:
    measurement = measured({"strata": [4.0], "numpy": [2.0]})
    assert [row.ratio for row in rows(measurement, "numpy")] == [2.0, 1.0]
    assert [row.ratio for row in rows(measurement, "torch")] == [None, None]


@pytest.mark.usefixtures("single_calls")
def test_contenders_take_turns_for_all_rounds() -> None:
    turns: list[str] = []

    def note(name: str) -> Contender:
        def result(call: int, value: Array) -> Array:
            turns.append(name)
            return value

        return fake(name, result)

    measurement = measure(SMALL, [note("strata"), note("rival")], plan=SHORT)
    assert turns[4:] == ["strata", "rival"] * 3
    assert measurement.rounds == 3 and measurement.stopped is None
    assert all(len(run.samples) == 3 and run.seconds for run in measurement.runs)


@pytest.mark.usefixtures("single_calls")
def test_with_several_threads_each_step_is_woken_before_it_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(harness.time, "sleep", waits.append)
    calls: list[int] = []

    def note(call: int, value: Array) -> Array:
        calls.append(call)
        return value

    measure(SMALL, [fake("rival", note)], Settings(threads=2), SHORT)
    assert waits == [harness.SETTLED] * 3 * 2 and len(calls) == 2 + 3 * 2, "and the ceiling's probe as well"


def test_our_kernel_gets_the_count_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr("compiler.driver.building.build", lambda f, threads, **_: asked.append(threads) or build(f))
    contenders.CONTENDERS["strata"].bind(SMALL, Settings(threads=2), SMALL.draw(0), np.empty(SMALL.shape, np.float32))
    assert asked == [2]


def test_short_calls_are_made_in_succession_as_many_for_each(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = {"strata": 0.010, "rival": 0.025}
    now, turns = [0.0], []
    monkeypatch.setattr(harness.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(harness, "BURST", 0.035)
    probed: list[float] = []
    monkeypatch.setattr(
        ceilings.Arithmetic,
        "probe",
        lambda self, seconds: probed.append(seconds) or ProbeReading(1e12 * len(probed), QUIET),
    )

    def slow(name: str) -> Contender:
        def bind(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
            value = workload.expected(inputs).value.astype(np.float32)

            def step() -> Array:
                assert np.isnan(out).all(), "each call is on a poisoned output"
                turns.append(name)
                now[0] += seconds[name]
                out[:] = value
                return out

            return step

        return Contender(name, "a fake", lambda: "", bind)

    measurement = measure(SMALL, [slow("strata"), slow("rival")], plan=Plan(2, inf))
    assert measurement.calls == 4 and measurement.rounds == 2
    assert turns == ["strata"] * 2 + ["rival"] * 2 + (["strata"] * 4 + ["rival"] * 4) * 2
    assert probed == [0.0, harness.PROBE, harness.PROBE], "once a round"
    ours, rival = measurement.runs
    assert ours.samples == pytest.approx([0.01] * 8) and rival.samples == pytest.approx([0.025] * 8)
    assert [probe.rate for probe in measurement.probes] == [2e12, 3e12] and measurement.ceiling == 2.5e12
    assert "1 thread, 2 rounds of 4 calls" in shown(measurement)
    assert as_json([measurement])["results"][0]["calls"] == 4


def test_a_wrong_contender_does_not_set_the_count_of_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "_warm", lambda run, expected: {"strata": 0.001, "rival": 1e-9}[run.contender.name])
    monkeypatch.setattr(harness, "BURST", 0.003)

    def bind(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
        return lambda: out

    original = harness.Run
    monkeypatch.setattr(
        harness, "Run", lambda who, *remaining: original(who, *remaining, wrong="no" if who.name == "rival" else None)
    )
    measurement = measure(SMALL, [right("strata"), Contender("rival", "", lambda: "", bind)], plan=SHORT)
    assert measurement.calls == 3


def off_by_one(call: int, value: Array) -> Array:
    return value + 1


def unwritten(call: int, value: Array) -> Array:
    value[3, 4] = np.nan
    return value


def late(call: int, value: Array) -> Array:
    return value if call < 4 else value * 2


def test_a_wrong_result_is_shown_with_its_error_and_what_is_allowed() -> None:
    expected = error_bounds.Bounded(np.array([1.0, 2.0, 4.0]), np.array([1e-6, 1e-6, 1e-3]))
    assert fault(np.array([1.0, 2.0, 4.001], np.float32), expected) is None
    actual = fault(np.array([1.00001, 2.0001, 4.003], np.float32), expected)
    assert actual == "3 of 3 elements, the worst at (1,): 2.0001 for 2, error 1.0e-04, allowed 2.0e-06"
    nothing = fault(np.array([1.0, np.nan, 5.0], np.float32), expected)
    assert nothing is not None and "2 of 3 elements, the worst at (1,): nan for 2, error nan, allowed" in nothing


@pytest.mark.parametrize("result", [off_by_one, unwritten, late])
def test_a_wrong_result_has_no_time(result: Callable[[int, Array], Array]) -> None:
    measurement = measure(SMALL, [right("strata"), fake("rival", result)], plan=SHORT)
    ours, rival = rows(measurement)
    assert ours.median is not None and rival.median is None and rival.ratio is None
    assert rival.wrong is not None and "elements" in rival.wrong
    assert "wrong" in shown(measurement)
    (entry,) = [c for c in as_json([measurement])["results"][0]["contenders"] if c["name"] == "rival"]
    assert entry["median"] is None and entry["rate"] is None and entry["wrong"]


def test_the_output_is_poisoned_before_each_call() -> None:
    def lazy(workload: Workload, settings: Settings, inputs: Sequence[Array], out: Array) -> Step:
        out[:] = workload.expected(inputs).value
        return lambda: out

    measurement = measure(SMALL, [Contender("lazy", "does nothing", lambda: "", lazy)], plan=SHORT)
    assert measurement.runs[0].wrong is not None


def test_a_result_of_another_shape_is_wrong() -> None:
    expected = error_bounds.exact(np.zeros((2, 3), np.float32))
    assert fault(np.zeros((3, 2), np.float32), expected) == "its shape is (3, 2), not (2, 3)"


def test_contenders_that_refuse_are_named() -> None:
    def refuse(*given: Any) -> Step:
        raise TargetError("it is out today")

    measurement = measure(SMALL, [right("strata"), Contender("away", "", lambda: "", refuse)], plan=SHORT)
    assert measurement.left_out == {"away": "it is out today"}
    assert "left out: away: it is out today" in shown(measurement)
    assert as_json([measurement])["results"][0]["left_out"] == {"away": "it is out today"}


def test_who_is_not_installed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("torch", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(c_loops, "find_gcc", lambda: None)
    away = ["torch", "torch.compile", "onnxruntime", "gcc"]
    measurement = measure(workloads.find("mm_exp_mm:8x8x8x8"), contenders.find(away), plan=SHORT)
    assert set(measurement.left_out) == set(away)
    said = "onnxruntime is not installed: pip install 'strata-compiler[bench]'"
    assert measurement.left_out["onnxruntime"] == said
    assert [run.contender.name for run in measurement.runs] == ["strata"]


def test_an_unknown_contender_is_refused() -> None:
    with pytest.raises(InputError, match="there is no contender 'nobody'"):
        contenders.find(["nobody"])


@pytest.mark.usefixtures("single_calls")
def test_an_interruption_keeps_what_was_measured() -> None:
    def result(call: int, value: Array) -> Array:
        if call == 4:
            raise KeyboardInterrupt
        return value

    measurement = measure(SMALL, [right("strata"), fake("rival", result)], plan=Plan(9, inf))
    assert measurement.interrupted and measurement.rounds == 2
    assert [len(run.samples) for run in measurement.runs] == [3, 2]
    assert "2 of 9 rounds: it was interrupted" in shown(measurement)


def test_a_spent_budget_ends_the_rounds_and_is_said() -> None:
    measurement = measure(SMALL, [right("strata")], plan=Plan(9, 0.0))
    assert measurement.rounds == 1
    assert "1 of 9 rounds: the budget of 0 s ended" in shown(measurement)


def test_few_rounds_are_said() -> None:
    assert "fewer than 9 rounds" in shown(measure(SMALL, [right("strata")], plan=SHORT))


def test_the_json_document() -> None:
    measurement = measure(SMALL, [right("strata")], Settings(1, "strict"), SHORT, seed=5)
    document = json.loads(json.dumps(as_json([measurement])))
    assert set(document) == {"format", "machine", "results"}
    assert {"name", "cores", "vector_bits"} <= set(document["machine"])
    (output,) = document["results"]
    assert output["workload"] == "matmul_7x11x13" and output["unit"] == "GFLOP/s"
    assert (output["threads"], output["policy"], output["seed"]) == (1, "strict", 5)
    assert (output["rounds"], output["planned_rounds"], output["stopped"]) == (3, 3, None)
    assert set(output["ceiling"]) == {"median", "minimum", "maximum"}
    (contender,) = output["contenders"]
    figures = {"median", "minimum", "maximum", "rate", "percent_of_ceiling", "ratio_to_ours"}
    assert set(contender) == {"name", "version", "what", "wrong", "disturbance"} | figures
    assert set(contender["disturbance"]) == {"away", "repeated", "used"}
    assert all(isinstance(contender[figure], float) for figure in figures)


@pytest.mark.sampled
@pytest.mark.parametrize("name", workloads.PRESETS)
def test_every_workload_agrees_with_its_reference(name: str) -> None:
    workload = workloads.find(name, Fraction(1, 16))
    inputs = workload.draw(seed=3)
    expected = workload.expected(inputs)
    assert np.isfinite(expected.value).all() and np.isfinite(expected.error).all()
    out = np.full(workload.shape, np.nan, np.float32)
    assert fault(workload.numpy(inputs, out)(), expected) is None
    function = workload.function()
    assert fault(evaluate(function.module, inputs)[0], expected) is None
    assert fault(build(function)(*inputs), expected) is None


@pytest.mark.parametrize("name", ["matmul_512", "mm_exp_mm:64x512x64x64", "attention:2x64x64", "mlp", "conv_7x7"])
def test_one_missing_product_is_noticed(name: str) -> None:
    """The tolerance is not so wide that a forgotten step of a reduction passes."""
    workload = workloads.find(name)
    inputs = workload.draw(seed=3)
    expected = workload.expected(inputs)
    inputs[0] = inputs[0].copy()
    channels_first = inputs[0].ndim == 4
    inputs[0][(slice(None), -1) if channels_first else (..., -1)] = 0
    out = np.full(workload.shape, np.nan, np.float32)
    assert fault(workload.numpy(inputs, out)(), expected) is not None


def sigmoid_by_tanh(x: Array) -> Array:
    """As onnxruntime and XLA compute it."""
    half = np.float32(0.5)
    return half + half * np.tanh(half * x)


def sigmoid_by_exp(x: Array) -> Array:
    return np.float32(1) / (np.float32(1) + np.exp(-x))


@pytest.mark.parametrize("sigmoid", [sigmoid_by_tanh, sigmoid_by_exp])
def test_the_tolerance_of_a_sigmoid_allows_each_way_to_compute_it(sigmoid: Callable[[Array], Array]) -> None:
    """A small result of the first has an error in units of 1/2, not of the result."""
    x = np.linspace(-20, 20, 100_001).astype(np.float32)
    expected = error_bounds.sigmoid(error_bounds.exact(x))
    assert fault(sigmoid(x), expected) is None
    workload = workloads.find("swish:512x512")
    a, b, bias = workload.draw(seed=1)
    a, bias = 6 * a, 0 * bias
    assert fault(a * sigmoid(a) * b + bias, workload.expected([a, b, bias])) is None
    wrong = fault(sigmoid(x) + np.float32(3e-7), expected)
    assert wrong is not None and "error " in wrong and "allowed " in wrong


def test_every_family_says_what_its_tolerance_is_of() -> None:
    for name, (family, _) in workloads.FAMILIES.items():
        text = family.__doc__ or ""
        assert "Tolerance: of " in text or "The same" in text, name


def test_tolerances_hold_for_sums_in_sequence() -> None:
    random = np.random.default_rng(1)
    a, b = random.random((4, 5000), np.float32), random.random((5000, 4), np.float32)
    output = np.zeros((4, 4), np.float32)
    for k in range(5000):
        output += np.outer(a[:, k], b[k])
    assert fault(output, error_bounds.matmul(error_bounds.exact(a), error_bounds.exact(b))) is None


def test_inputs_differ_from_seed_to_seed_and_repeat() -> None:
    first, again, second = (SMALL.draw(seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again) and not np.array_equal(first, second)
    assert first.dtype == np.float32 and np.count_nonzero(first) == first.size


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("matmull_512", "did you mean 'matmul_512'?"),
        ("matmul", "needs its extents as matmul:MxKxN"),
        ("matmul:3x4", "needs its extents as matmul:MxKxN"),
        ("matmul:3x0x4", "needs its extents"),
        ("softmax:-3x4", "needs its extents"),
        ("matmul:999999x999999x999999", "GB of arrays"),
    ],
)
def test_names_that_are_no_workload_are_refused(name: str, said: str) -> None:
    with pytest.raises(InputError, match=re.escape(said)):
        workloads.find(name)


def test_extents_come_from_the_name_and_the_scale() -> None:
    assert workloads.find("matmul:3x4x5").shape == (3, 5)
    assert workloads.find("conv_56x56:4x5x6x7").shape == (1, 7, 5, 6)
    quarter = workloads.find("mm_exp_mm", Fraction(1, 4))
    assert [i.shape for i in quarter.inputs] == [(256, 512), (512, 256), (256, 768)]
    assert "every extent times 1/4" in quarter.what and quarter.flops == 2 * 256 * 256 * (512 + 768)


@pytest.mark.skipif(c_loops.find_gcc() is None, reason="gcc is not installed")
def test_the_loops_in_c_are_right_and_serve_one_workload_only() -> None:
    gcc = contenders.CONTENDERS["gcc"]
    workload = workloads.find("mm_exp_mm:16x33x20x17")
    inputs = workload.draw(seed=2)
    out = np.full(workload.shape, np.nan, np.float32)
    assert fault(gcc.bind(workload, Settings(), inputs, out)(), workload.expected(inputs)) is None
    with pytest.raises(TargetError, match="one thread"):
        gcc.bind(workload, Settings(threads=2), inputs, out)
    with pytest.raises(TargetError, match="mm_exp_mm only"):
        gcc.bind(SMALL, Settings(), SMALL.draw(0), np.empty(SMALL.shape, np.float32))


@pytest.mark.parametrize("kind", [ceilings.Arithmetic, ceilings.Bandwidth])
@pytest.mark.parametrize("threads", [1, 2])
def test_ceilings_are_positive(kind: Callable[[int], ceilings.Ceiling], threads: int) -> None:
    assert 0 < kind(threads).probe(0.0).rate < float("inf")


def test_the_arithmetic_ceiling_stays_in_registers() -> None:
    assembly = ceilings.library().asm("arithmetic")
    if "vfmadd" not in assembly:
        pytest.skip("no x86 with FMA")
    fma = [line for line in assembly.splitlines() if "vfmadd" in line]
    assert len(fma) >= 10 and not any("(" in line for line in fma)


def test_the_ceiling_of_bytes_stores_past_the_caches() -> None:
    text = ceilings.llvm_text(16, 24)
    (store,) = [line for line in text.splitlines() if "store" in line and "%pa" in line]
    assert store.endswith("align 64, !nontemporal !0") and "fence seq_cst" in text
    assembly = ceilings.library().asm("triad")
    assert "vmovntps" in assembly or "vfmadd" not in assembly


def test_the_ceiling_is_named() -> None:
    flops, moved = (measure(workloads.find(n), [right("strata")], plan=SHORT) for n in ("matmul:7x11x13", "swish:9x7"))
    assert [r["ceiling_is"] for r in as_json([flops, moved])["results"]] == ["FMA in registers", "non-temporal triad"]
    assert "non-temporal triad" in shown(moved) and "FMA in registers" in shown(flops)


@pytest.mark.parametrize("name", ["mlp:9x20x33x10", "conv:3x7x5x20"])
def test_constant_weights_are_packed_before_in_a_row_of_its_own(name: str) -> None:
    measurement = measure(workloads.find(name), contenders.find(["prepared"]), plan=SHORT, seed=0)
    assert [row.name for row in rows(measurement)] == ["strata", "prepared"]
    assert not measurement.left_out


def test_without_constants_nothing_is_prepared() -> None:
    measurement = measure(SMALL, contenders.find(["prepared"]), plan=SHORT, seed=0)
    assert measurement.left_out == {"prepared": "matmul_7x11x13 has no constant inputs"}


@pytest.mark.parametrize("name", list(workloads.PRESETS))
def test_constants_are_inputs(name: str) -> None:
    workload = workloads.find(name)
    assert set(workload.constants) < {tensor.name for tensor in workload.inputs}


def test_rows_of_calls() -> None:
    """Every kind of arrays is taken; the rows say what they are compared with."""
    rows = {row.what: row for row in calls.measure(calls.cases(), rounds=1, calls=2)}
    assert {calls.EMPTY, calls.ADD, "numpy", "numpy, out", "__dlpack__", "bound"} <= rows.keys()
    row = calls.Row("numpy", 2e-6, 5e-7, 2.5e-7)
    assert str(row).split() == ["numpy", "2.00", "us", "4.0", "x", "empty", "8.0", "x", "numpy.add"]
