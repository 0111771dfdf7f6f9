"""Machine code from the cache: the same kernel, and none for another program, setting, machine or compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import compiler
from compiler import driver, te
from compiler.dialects.functions import find_function
from compiler.driver import BuildPlan, building
from compiler.driver.cache import entries
from compiler.driver.main import assemble
from compiler.driver.units import compile as unit_compile
from compiler.driver.units import pool
from compiler.driver.units.compile import CompileJob, key_text
from compiler.driver.units.unit import Scheduled, Unit, UnitKey
from compiler.schedule import Schedule
from compiler.support.errors import InputError, TargetError
from compiler.targets.cpu import Kernel
from tests.groups import program
from tests.programs import matmul
from tests.unit.driver.test_main import add, packed, product


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("STRATA_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the units that are compiled."""
    collected: list[str] = []
    compile_unit = pool.compile_unit

    def noted(job: CompileJob) -> Unit:
        collected.append(job.name)
        return compile_unit(job)

    monkeypatch.setattr(pool, "compile_unit", noted)
    return collected


def job(name: str = "one") -> CompileJob:
    text = key_text(find_function(product().module))
    return CompileJob(UnitKey(text, packed(), (1,), (), "contract", 1, "here"), name)


def test_a_unit_is_compiled_once_whatever_its_name(folder: Path, compiled: list[str]) -> None:
    (first,) = pool.compiled([job()], pool.Team(1))
    (second,) = pool.compiled([job("two")], pool.Team(1))
    assert compiled == ["one"] and first.seconds > 0 and first.prepare
    assert [code.name for code in second.codes] == ["two.prepare", "two"]
    assert replace(second.named("one"), seconds=first.seconds) == first


OTHERS: dict[str, Callable[[UnitKey], UnitKey]] = {
    "text": lambda key: replace(key, text=key.text.replace("add", "mul")),
    "script": lambda key: replace(key, script=None),
    "constants": lambda key: replace(key, constants=()),
    "shared": lambda key: replace(key, shared=((0, 0),)),
    "policy": lambda key: replace(key, policy="strict"),
    "threads": lambda key: replace(key, threads=2),
    "machine": lambda key: replace(key, machine="elsewhere"),
}


def test_units_of_other_keys_are_others(folder: Path) -> None:
    assert set(OTHERS) == set(UnitKey.__dataclass_fields__)
    (unit,) = pool.compiled([job()], pool.Team(1))
    assert entries.get(Unit, [job().key]) == unit
    for change in OTHERS.values():
        assert entries.get(Unit, [change(job().key)]) is None


PAIR = program(
    {"product": product(), "add": add()}, {"x": (32, 32), "w": (32, 32)}, ["a = product(x, w)", "b = add(a, x)"], ["b"]
)


SMALL = program({"add": add()}, {"x": (32, 32)}, ["a = add(x, x)", "b = add(a, x)"], ["b"])


def constant_layer() -> te.Function:
    """Products with weights that the program knows, one of which is a view of the other, and one that is given."""
    x, v = te.placeholder((32, 32), name="X"), te.placeholder((32, 32), name="V")
    w = te.constant(np.random.default_rng(9).random((32, 32), np.float32), name="W")
    flat = te.nn.reshape(te.nn.reshape(w, (32 * 32,)), (32, 32))
    y = te.nn.matmul(te.nn.matmul(x, w, name="P"), flat)
    return te.function("constant", [x, v], te.nn.matmul(te.nn.relu(y), v))


def scheduled(parallel: bool = False) -> Schedule:
    s = Schedule(compiler.lower(product()))
    s.pack(block := s.get_block("P"), "W", [1, 16], [1, 0, 2])
    if parallel:
        s.parallel(s.get_loops(block)[0])
    return s


def one_nest() -> te.Function:
    x = te.placeholder((32, 32), name="X")
    w = te.constant(np.random.default_rng(9).random((32, 32), np.float32), name="W")
    return te.function("nest", [x], te.nn.matmul(x, w))


PROGRAMS: dict[str, Callable[[], tuple[object, tuple[str, ...] | None]]] = {
    "groups": lambda: (PAIR, None),
    "groups and constants": lambda: (PAIR, ("w",)),
    "groups and known constants": lambda: (constant_layer(), ("V",)),
    "a nest": lambda: (product(), None),
    "a nest and a known constant": lambda: (one_nest(), None),
    "a schedule": lambda: (scheduled(parallel=True), None),
    "a schedule and a constant": lambda: (scheduled(), ("W",)),
    "low": lambda: (compiler.build(product()).text("low"), None),
}


def random(shape: Sequence[int], seed: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).random(shape, np.float32)


def built(name: str) -> Kernel:
    x, names = PROGRAMS[name]()
    constants = None if names is None else {n: random((32, 32), 5) for n in names}
    return compiler.build(x, constants=constants, threads=2)


def results(kernel: Kernel) -> list[np.ndarray[Any, Any]]:
    arrays = [random(a.shape, n) for n, a in enumerate(kernel.arguments)]
    if not kernel.outputs:
        kernel(*arrays)
        return arrays
    actual = kernel(*arrays[: len(arrays) - kernel.outputs])
    return list(actual) if isinstance(actual, tuple) else [actual]


def interface(kernel: Kernel) -> list[object]:
    """What a kernel says of itself, but for seconds."""
    facts = replace(kernel.facts, groups=(), build_seconds=0.0, cached=False)
    groups = [replace(group, seconds=0.0) for group in kernel.groups]
    fixed = [(position, array.shape) for position, array in kernel.fixed.arrays.items()]
    before = kernel.fixed.preparation
    own = [kernel.name, kernel.arguments, kernel.outputs, kernel.policy, kernel.threads, facts, groups, fixed]
    texts = [kernel.text(level) for level in kernel._texts if level not in ("llvm", "asm")]
    return [*own, list(kernel._texts), texts, None if before is None else interface(before)]


@pytest.mark.sampled
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_second_kernel_is_the_first(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = built(name)
    expected, said = results(first), interface(first)
    with monkeypatch.context() as patched:
        for module in (assemble, unit_compile):
            patched.setattr(module, "object_code", lambda *_: pytest.fail("compiled again"))
        second = built(name)
        actual = results(second)
    assert [kernel.facts.cached for kernel in (first, second)] == [False, True]
    assert all(group.seconds == 0 for group in second.groups)
    assert interface(second) == said
    for left, right in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(left, right)


def spoiled(folder: Path) -> None:
    for file in folder.iterdir():
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 0xFF
        file.write_bytes(content)


def exchanged(folder: Path) -> None:
    """Each entry is a whole and valid one, under the name of another."""
    files = sorted(folder.iterdir())
    contents = [file.read_bytes() for file in files]
    for file, content in zip(files, contents[1:] + contents[:1], strict=True):
        file.write_bytes(content)


DAMAGES = [spoiled, exchanged, lambda folder: folder.chmod(0o777), lambda folder: shutil.rmtree(folder)]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_cache_is_not_run(damage: Callable[[Path], object], folder: Path, compiled: list[str]) -> None:
    expected = results(compiler.build(SMALL, threads=1))
    assert len(compiled) == 1
    damage(folder)
    kernel = compiler.build(SMALL, threads=1)
    assert not kernel.facts.cached and len(compiled) == 2
    np.testing.assert_array_equal(results(kernel), expected)


def test_without_a_cache_nothing_is_kept(folder: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_CACHE", "off")
    assert not any(compiler.build(SMALL, threads=1).facts.cached for _ in range(2))
    monkeypatch.setenv("STRATA_CACHE", "on")
    monkeypatch.setenv("STRATA_CACHE_DIR", "/proc/nowhere")
    assert not any(compiler.build(SMALL, threads=1).facts.cached for _ in range(2))
    assert len(compiled) == 4 and not folder.exists()


def renamed() -> te.Function:
    return matmul(32, 32, 32, inputs="YW", output="P")


def test_what_differs_is_another_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    w = random((32, 32), 1)

    def is_kept(x: object = None, **settings: Any) -> bool:
        return compiler.build(product() if x is None else x, **{"threads": 1, **settings}).facts.cached

    assert not is_kept() and is_kept() and is_kept(str(product()))
    for settings in ({"policy": "strict"}, {"threads": 2}, {"constants": {"W": w}}, {"constants": {}}):
        assert not is_kept(**settings) and is_kept(**settings)
    assert is_kept(constants={"W": w + 1})  # elements that are given are no part of machine code
    assert not is_kept(renamed()) and compiler.build(renamed(), threads=1).arguments[0].name == "Y"
    assert not is_kept(one_nest())
    second = te.function("nest", [x := te.placeholder((32, 32), name="X")], te.nn.matmul(x, te.constant(w, name="W")))
    assert not is_kept(second)
    monkeypatch.setenv("STRATA_MACHINE", "sse4")
    assert not is_kept()
    monkeypatch.delenv("STRATA_MACHINE")
    monkeypatch.setattr("compiler.driver.cache.entries.fingerprint", lambda: "other sources")
    assert not is_kept()


def test_groups_are_kept_with_their_schedules(folder: Path) -> None:
    def groups(source: Scheduled) -> Kernel:
        return driver.build_groups(PAIR, {"product": source}, threads=1)

    sources = [Scheduled(packed(), "record", "proved"), Scheduled(packed(), "record", "run"), Scheduled()]
    assert [groups(source).facts.cached for source in sources] == [False] * 3
    kernel = groups(sources[0])
    assert kernel.facts.cached and (kernel.groups[0].source, kernel.groups[0].verdict) == ("record", "proved")


def test_a_plan_is_made_once(folder: Path) -> None:
    made: list[ModuleOp] = []

    def plan(module: ModuleOp) -> BuildPlan:
        made.append(module)
        return BuildPlan(module, {"product": Scheduled(packed(), "default", "proved")})

    kernels = [driver.build_planned(PAIR, plan, ("auto", "digest"), 1) for _ in range(2)]
    assert len(made) == 1 and kernels[1].facts.cached and kernels[1].groups[0].source == "default"
    assert kernels[1].text("loop") == kernels[0].text("loop") and len(made) == 2
    assert not driver.build_planned(PAIR, plan, ("auto", "another"), 1).facts.cached


def test_schedules_are_chosen_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compiler.build(product(), schedule="auto", threads=1)
    monkeypatch.setattr(building, "source_of", lambda *_: pytest.fail("chosen again"))
    second = compiler.build(product(), schedule="auto", threads=1)
    assert second.facts.cached and [g.source for g in second.groups] == [g.source for g in first.groups] == ["model"]
    np.testing.assert_array_equal(results(second), results(first))
    assert not compiler.build(product(), schedule="written", threads=1).facts.cached


def test_wrong_constants_are_refused_by_a_kept_program(folder: Path) -> None:
    for _ in range(2):
        for x, name in ((PAIR, "w"), (product(), "W")):
            compiler.build(x, constants={name: random((32, 32), 0)})
            with pytest.raises(TargetError, match=r"shape|\[32, 32\]|32x32|\(32, 32\)"):
                compiler.build(x, constants={name: random((32, 31), 0)})
            with pytest.raises(InputError, match="no input 'Q'"):
                compiler.build(x, constants={"Q": random((32, 32), 0)})


def test_another_process_runs_what_this_one_has_compiled(folder: Path) -> None:
    text, arrays = str(PAIR), [random((32, 32), n) for n in range(2)]
    expected = compiler.build(text, threads=1)(*arrays)
    code = f"""
import numpy as np
import compiler
kernel = compiler.build({text!r}, threads=1)
x, w = (np.random.default_rng(n).random((32, 32), np.float32) for n in range(2))
print(kernel.facts.cached, kernel(x, w).tobytes().hex())
"""
    environment = {**os.environ, "PYTHONHASHSEED": "5"}
    checked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert checked.stdout.split() == ["True", expected.tobytes().hex()]
