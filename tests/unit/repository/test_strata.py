"""The package by its own name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import compiler
import compiler.autotune.task
import strata
from compiler.__main__ import main
from compiler.opt import main as strata_opt
from strata import Schedule, SearchTask, TuningOptions, build, te

ROOT = Path(__file__).parents[3]


def test_names_are_the_compilers() -> None:
    assert build is compiler.build and strata.lower is compiler.lower
    assert SearchTask is compiler.autotune.task.SearchTask and Schedule is compiler.schedule.Schedule
    assert TuningOptions(trials=1).trials == 1
    assert set(strata.te.__all__) == set(compiler.te.__all__) and strata.te.nn is compiler.te.nn
    assert set(compiler.recipes.__all__) < set(strata.recipes.__all__)
    assert all(hasattr(strata, name) for name in dir(strata))


def test_it_builds() -> None:
    x = te.placeholder((3,), "f32", "x")
    np.testing.assert_array_equal(build(te.function("f", [x], te.nn.relu(x)))(np.float32([-1, 0, 2])), [0, 0, 2])


def test_what_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'strata' has no attribute 'nonsense'"):
        _ = strata.nonsense
    with pytest.raises(ImportError, match="nonsense"):
        __import__("strata.nonsense")


@pytest.mark.parametrize("command", [main, strata_opt])
def test_commands_say_their_version(command: object, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        command(["--version"])  # type: ignore[operator]
    except SystemExit as ended:
        assert not ended.code
    assert capsys.readouterr().out.split()[-1] == strata.__version__ == compiler.__version__


def test_the_module_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "strata", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "tune" in done.stdout


def test_every_name_can_be_imported_without_torch() -> None:
    code = (
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *of: None if name == 'torch' else found(name, *of)\n"
        "from strata import *; import strata; assert te and workload and strata.recipes\n"
        "try: from_torch(1)\nexcept strata.errors.InputError as said: print(said)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "from_torch needs the package torch: pip install 'strata-compiler[torch]'\n"
