"""The search space of GPUs: what rules make of programs, features, and candidates that are checked on numpy."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import recipes, te
from compiler.autotune.measure import gpu_builder
from compiler.autotune.measure.gpu_builder import GpuBuilder
from compiler.autotune.measure.shrink import shorter_extents, shrunk
from compiler.autotune.options import TuningOptions
from compiler.autotune.task import SearchTask
from compiler.database import Database, Record
from compiler.database.outcome import ESTIMATED, Outcome
from compiler.dialects.functions import find_function
from compiler.driver import build_as_written
from compiler.driver.reference.subject import Subject
from compiler.pipeline.loops import lower
from compiler.pipeline.source import parse
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.recipes import ThreadTiles
from compiler.recipes.rules import GPU_RULES
from compiler.schedule import Schedule, replay
from compiler.space import gpu_features
from compiler.space.derivation import derive
from compiler.space.gpu_features import REASONS, estimate, extract
from compiler.space.space import SketchSpace, work
from compiler.support.errors import InputError, ScheduleError, TargetError
from compiler.targets.cuda import ARCHITECTURES, nvrtc
from compiler.targets.cuda.machines import MACHINES, representative_gpu
from compiler.targets.registry import gpu_of
from tests.gpu_schedules import product
from tests.sample import some
from tests.unit.recipes.test_gpu import convolution
from tests.unit.space.test_space import PROGRAMS

A100 = representative_gpu("sm_80")
NAMES = ["convolution", "matmul", "ragged", "chain", "softmax", "norm", "swish", "attention", "layers", "pool"]


def _space(function: te.Function) -> tuple[Schedule, SketchSpace]:
    schedule = Schedule(lower(function))
    return schedule, SketchSpace(derive(schedule, GPU_RULES, A100).sketches, A100)


@pytest.mark.parametrize("name", some(NAMES, 4))
def test_candidates_are_what_their_features_say_and_are_right(name: str) -> None:
    """The default of a sketch is proved and does no wrong on numpy; features of it and of a random one, which may not
    apply, are those of the program that is applied."""
    schedule, space = _space(PROGRAMS[name])
    draws, useful = random.Random(7), work(schedule.program)
    check = GpuBuilder(Subject(str(schedule.original), None, "contract", 1, 0, "cuda", "sm_80"))
    ahead = [n for n, sketch in enumerate(space.sketches) if "a round ahead" in sketch.name]
    for number in (0, *ahead[:1]):
        sketch = space.sketches[number]
        drawn = tuple(draws.randrange(n) for n in sketch.sizes)
        actual = space.features(number, np.array([sketch.recorded_positions, drawn]).reshape(2, len(sketch.sizes)))
        for positions, reason, values in zip(
            (sketch.recorded_positions, drawn), actual.reasons, actual.values, strict=True
        ):
            script = space.script((number, positions))
            try:
                applied = replay(parse(script), schedule.original)
            except ScheduleError:
                assert positions == drawn, "a default applies"
                continue
            concrete = extract(applied.program, useful, A100)
            assert np.allclose(np.array(concrete.features, np.float32), values, rtol=1e-5)
            bad = [REASONS[n] for n, holds in enumerate(concrete.infeasible, 1) if holds]
            assert (bad[0] if bad else "") == REASONS[reason]
            if positions == sketch.recorded_positions:
                outcome = check(script)
                if isinstance(outcome, Outcome):
                    assert number > 0 and outcome.kind == "spills", str(outcome)
                else:
                    assert 3e-6 < outcome.artefact.estimate < 1e-3


def test_a_convolution_is_one_kernel_with_what_comes_after() -> None:
    schedule, space = _space(convolution(256, 16))
    applied = replay(parse(space.script(space.defaults[0])), schedule.original)
    kernel = build_as_written(applied, "cuda")
    (launch,) = kernel.launches
    assert launch.grid > (1, 1, 1) and launch.block > (1, 1, 1)
    assert kernel.text.count("__shared__") == 2 and kernel.text.count("__syncthreads") == 1


def test_operands_are_fetched_by_vectors() -> None:
    schedule, space = _space(PROGRAMS["matmul"])
    wide = next(n for n, sketch in enumerate(space.sketches) if "four at a time" in sketch.name)
    script = parse(space.script((wide, space.sketches[wide].recorded_positions)))
    text = build_as_written(replay(script, schedule.original), "cuda").text
    assert "= *reinterpret_cast<const float4*>(&" in text


# --- features -------------------------------------------------------------------------------------------------------


def _tiles(m: int, n: int, k: int, spatial: list[tuple[int, int, int]], panel: int) -> Schedule:
    s = Schedule(lower(product(m, n, k)))
    recipes.tile_on_threads(s, s.get_block("C"), None, ThreadTiles(spatial, [panel]))
    return s


def _original(s: Schedule) -> Program:
    return read(find_function(s.original, None))


def test_estimates_tell_good_tiles_from_bad() -> None:
    good = _tiles(1024, 1024, 1024, [(1, 16, 8), (1, 16, 8)], 8)
    small = _tiles(1024, 1024, 1024, [(1, 16, 1), (1, 16, 1)], 8)
    lonely = _tiles(1024, 1024, 1024, [(1, 2, 2), (1, 2, 2)], 8)
    times = [estimate(s.program, A100) for s in (good, small, lonely)]
    assert times == sorted(times) and times[1] > 2 * times[0] and times[2] > 3 * times[1]
    tiles = ThreadTiles([(1, 16, 8), (1, 16, 8)], [8], twice=True)
    ahead = Schedule(lower(product(1024, 1024, 1024)))
    recipes.tile_on_threads(ahead, ahead.get_block("C"), None, tiles)
    assert estimate(ahead.program, A100) < times[0], "fewer barriers, and fetches behind the arithmetic"
    waiting = [extract(schedule.program, 1.0, A100).features[4 + 12] for schedule in (good, ahead)]
    assert 0 < waiting[1] < 0.6 * waiting[0], "one barrier a round instead of two"
    perfect = gpu_features.ideal(good.program, work(_original(good)), A100)
    assert perfect < times[0] < 5 * perfect


@pytest.mark.parametrize(
    ("spatial", "panel", "reason"),
    [
        ([(1, 64, 1), (1, 32, 1)], 8, "threads"),
        ([(1, 8, 16), (1, 8, 16)], 8, "registers"),
        ([(1, 16, 8), (1, 16, 8)], 256, "shared memory"),
    ],
)
def test_what_the_hardware_does_not_have(spatial: list[tuple[int, int, int]], panel: int, reason: str) -> None:
    s = _tiles(1024, 1024, 1024, spatial, panel)
    actual = extract(s.program, work(_original(s)), A100).infeasible
    assert [REASONS[n] for n, holds in enumerate(actual, 1) if holds] == [reason]


def test_every_architecture_is_described() -> None:
    assert tuple(MACHINES) == ARCHITECTURES
    assert all(gpu_of("cuda", arch).arch == arch for arch in ARCHITECTURES)
    with pytest.raises(TargetError, match=r"no GPU of the architecture 'sm_1' is described \(there are sm_70, "):
        gpu_of("cuda", "sm_1")


# --- smaller programs -----------------------------------------------------------------------------------------------


def test_a_smaller_program_sums_less_and_keeps_the_rounds() -> None:
    s = _tiles(20, 24, 70, [(1, 4, 2), (1, 4, 2)], 8)
    sizes = shorter_extents(s.program, _original(s))
    assert sizes == {"C": {2: 2 * 8 + 70 % 8}}
    small = build_as_written(ModuleOp([write(shrunk(_original(s), sizes))]))
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in ((20, 70), (70, 24)))
    np.testing.assert_allclose(small(a, b), a[:, :22] @ b[:22], rtol=1e-4, atol=1e-4)


def test_what_is_no_longer_that_block_keeps_its_length() -> None:
    s = Schedule(lower(product(8, 8, 64)))
    block = s.get_block("C")
    *_, k = s.get_loops(block)
    _, inner = s.split(k, [None, 4])
    s.rfactor(block, inner)
    assert "C" not in shorter_extents(s.program, _original(s))


# --- checks ---------------------------------------------------------------------------------------------------------


def _checked(monkeypatch: pytest.MonkeyPatch, old: str, new: str) -> Outcome:
    """What comes of the preferred candidate of a product when its kernels are spoilt."""
    schedule, space = _space(product(64, 64, 32))
    lowering = gpu_builder.lower_to_kernels

    def spoilt(*args: object) -> object:
        module, _, arguments = lowering(*args)  # type: ignore[arg-type]
        text = str(module)
        assert text.count(old), text
        wrong = parse(text.replace(old, new))
        return wrong, find_function(wrong, None), arguments

    monkeypatch.setattr(gpu_builder, "lower_to_kernels", spoilt)
    actual = GpuBuilder(Subject(str(schedule.original), None, "contract", 1, 0, "cuda", "sm_80"))(
        space.script(space.defaults[0])
    )
    assert isinstance(actual, Outcome)
    return actual


def test_a_later_kernel_may_read_an_output() -> None:
    """Of which the blocks that run have written a part."""
    x = te.placeholder((128, 64), name="X")
    d = te.compute((128, 64), lambda i, j: x[i, j] * 2.0, name="D")
    k = te.reduce_axis(64, "k")
    e = te.compute((128,), lambda i: te.sum(d[i, k] * x[i, k], k), name="E")
    schedule, space = _space(te.function("both", [x], [d, e]))
    check = GpuBuilder(Subject(str(schedule.original), None, "contract", 1, 0, "cuda", "sm_80"))
    actual = check(space.script(space.defaults[0]))
    assert not isinstance(actual, Outcome), str(actual)


def test_a_kernel_without_its_barriers_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = _checked(monkeypatch, '"gpu.barrier"() : () -> ()', "")
    assert actual.kind == "fault" and "race" in actual.reason


def test_wrong_results_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    actual = _checked(monkeypatch, "arith.mulf", "arith.addf")
    assert actual.kind == "wrong" and "elements" in actual.reason


@pytest.mark.skipif(not nvrtc.is_available(), reason="NVRTC is not installed")
def test_a_kernel_that_spills_is_told() -> None:
    s = _tiles(512, 512, 64, [(1, 2, 32), (1, 2, 32)], 2)
    check = GpuBuilder(Subject(str(s.original), None, "contract", 1, 0, "cuda", "sm_80"))
    actual = check(str(s.script))
    assert isinstance(actual, Outcome) and actual.kind == "spills" and "on sm_80" in actual.reason


# --- tensor cores -----------------------------------------------------------------------------------------------------


def _layers(dtype: str = "f16", m: int = 64, sizes: tuple[int, int, int] = (64, 128, 32)) -> te.Function:
    """Two products with relu and a conversion between them."""
    a, b, c = sizes
    x, w = te.placeholder((m, a), dtype, name="X"), te.placeholder((a, b), dtype, name="W")
    v = te.placeholder((b, c), dtype, name="V")
    h = te.nn.cast(te.nn.relu(te.nn.matmul(x, w, dtype="f32", name="H"), name="R"), dtype, name="Q")
    return te.function("layers", [x, w, v], [te.nn.matmul(h, v, dtype="f32", name="O")])


@pytest.mark.parametrize("dtype", some(["f16", "bf16"], 2))
def test_narrow_products_run_on_tensor_cores(dtype: str) -> None:
    schedule, space = _space(_layers(dtype))
    useful = work(schedule.program)
    check = GpuBuilder(Subject(str(schedule.original), None, "contract", 1, 0, "cuda", "sm_80"))
    draws = random.Random(3)
    assert space.sketches[0].name.count("on tensor cores, rounds ahead") == 2
    sketch = space.sketches[0]
    drawn = tuple(draws.randrange(n) for n in sketch.sizes)
    actual = space.features(0, np.array([sketch.recorded_positions, drawn]))
    for positions, values in zip((sketch.recorded_positions, drawn), actual.values, strict=True):
        script = space.script((0, positions))
        applied = replay(parse(script), schedule.original)
        concrete = extract(applied.program, useful, A100)
        assert np.allclose(np.array(concrete.features, np.float32), values, rtol=1e-5)
    built = check(space.script((0, sketch.recorded_positions)))
    assert not isinstance(built, Outcome), str(built)
    kernel = built.artefact.kernel
    assert [launch.block[0] for launch in kernel.launches] == [32, 32]
    assert kernel.text.count("= multiply_add(") == 2 and kernel.text.count("copy_async<16>(&") == 8


def test_estimates_of_tensor_cores() -> None:
    """Their products take a sixteenth of the time of others where nothing else counts, and sums lie in registers."""
    a, b = te.placeholder((2048, 2048), "f16", name="A"), te.placeholder((2048, 2048), "f16", name="B")
    function = te.function("mm", [a, b], [te.nn.matmul(a, b, dtype="f32", name="C")])
    s = Schedule(lower(function))
    recipes.tile_on_warps(s, s.get_block("C"), None, recipes.WarpTiles((2, 2), (4, 8), 2, twice=True))
    seconds = estimate(s.program, A100)
    useful = 2 * 2048**3
    assert 1.0 < seconds / (useful / (2 * 108 * 1024 * A100.clock)) < 3.0
    (kernel,) = (gpu_features._kernel(gpu_features.ProgramView(s.program), node, A100) for node in s.program.body)
    assert kernel.products == useful and kernel.registers == 4 * 8 * 4 + 4 * 4 + 8 * 2 + gpu_features.ADDRESSES
    assert kernel.threads == 128


def test_tensor_cores_are_for_what_they_take() -> None:
    def names(function: te.Function, arch: str = "sm_80") -> str:
        return str(
            [sketch.name for sketch in derive(Schedule(lower(function)), GPU_RULES, representative_gpu(arch)).sketches]
        )

    def one(dtype: str, m: int = 32, size: int = 32) -> te.Function:
        x, w = te.placeholder((m, size), dtype, name="X"), te.placeholder((size, size), dtype, name="W")
        return te.function("one", [x, w], [te.nn.matmul(x, w, dtype="f32")])

    a, b = te.placeholder((4, 32, 64), "f16", name="A"), te.placeholder((4, 64, 32), "f16", name="B")
    assert "tensor cores" in names(te.function("many", [a, b], [te.nn.batch_matmul(a, b, dtype="f32")]))
    assert "tensor cores" in names(one("f16"), "sm_75") and "tensor cores" not in names(one("bf16"), "sm_75")
    assert "tensor cores" in names(one("bf16"))
    assert "tensor cores" not in names(one("f32"))
    assert "tensor cores" in names(one("f16", 60)) and "tensor cores" in names(one("f16", 64, 60))  # zero-filled


# --- tasks ----------------------------------------------------------------------------------------------------------


def test_a_task_is_tuned_checked_and_built(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "gpu.db"
    task = SearchTask(product(16, 16, 16), target="cuda", arch="sm_86")
    assert task.estimated and task.space.estimated
    assert not SearchTask(product(8, 8, 8), threads=1).space.estimated
    best = task.tune(TuningOptions(trials=8, batch=4, database=path, builders=1))
    assert best is not None and best.outcome.kind == ESTIMATED and "estimated" in best.key.machine
    task.print_best(path, mode="cuda")
    text = capsys.readouterr().out
    assert "__global__ void __launch_bounds__" in text
    kernel = task.apply_best(path)
    assert kernel.file_text.strip() == text.strip() and kernel.arch == "sm_86"
    with pytest.raises(InputError, match=r"unknown mode 'llvm' \(there are script, steps, python, cuda, launches\)"):
        task.print_best(path, mode="llvm")
    with pytest.raises(InputError, match="nothing measured"):
        SearchTask(product(16, 16, 16), target="cuda", arch="sm_90").best(path)
    _check_predictions(path, task)


def _check_predictions(path: Path, task: SearchTask) -> None:
    """Without a GPU the search goes by a roofline of the features, not by a model; the estimate ranks what it tries."""
    with Database(path) as database:
        told = [(r.predicted, r.outcome.cost) for r in database.records(task.key) if r.predicted is not None]
    assert told
    for predicted, cost in told:
        assert 0.1 * cost < predicted < 10 * cost


@pytest.mark.parametrize("given", [{"threads": 2}, {"constants": ["F"]}])
def test_what_is_the_cpus_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(TargetError, match=r"(threads|constants) are the CPU's, not cuda's"):
        SearchTask(convolution(), target="cuda", **given)  # type: ignore[arg-type]


def test_a_search_without_time_answers_with_the_default(tmp_path: Path) -> None:
    task = SearchTask(convolution(64, 16), target="cuda", arch="sm_80")
    path = tmp_path / "gpu.db"
    best = task.tune(TuningOptions(seconds=0.001, database=path, builders=1, show=False))
    assert isinstance(best, Record) and best.outcome.kind == ESTIMATED and best.candidate is None
    kernel, default = task.apply_best(path), compiler.build(task.func, "cuda", arch="sm_80", schedule="auto")
    assert [(run.grid, run.block) for run in kernel.launches] == [(run.grid, run.block) for run in default.launches]
