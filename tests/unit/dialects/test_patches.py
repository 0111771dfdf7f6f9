"""The patches for xDSL apply to the pinned version, and define the ops that `compiler.dialects.upstream` defines."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import xdsl
from xdsl.irdl import IRDLOperation
from xdsl.traits import MemoryEffect

from compiler import universe

FOLDER = Path(__file__).parents[3] / "patches" / "xdsl"
ORDER = [
    "vector-effects",
    "arith-folding",
    "vector-gather",
    "gpu-shuffle",
    "memref-prefetch",
    "scalar-ops",
    "nvgpu",
]
READ = """
import json
from xdsl.dialects import get_all_dialects
from xdsl.traits import MemoryEffect
def described(op):
    d = op.get_irdl_definition()
    effects = sorted(type(t).__name__ for t in op.traits if isinstance(t, MemoryEffect))
    return [len(d.operands), len(d.results), sorted(d.properties), effects]
dialects = get_all_dialects()
names = ("vector", "gpu", "memref", "math", "arith", "affine", "nvgpu")
print(json.dumps({op.name: described(op) for name in names for op in dialects[name]().operations}))
"""


def test_the_patches_are_those_of_the_readme() -> None:
    assert {path.stem for path in FOLDER.glob("*.patch")} == set(ORDER)
    rows = re.findall(r"^\| `([\w-]+)` \|", (FOLDER / "README.md").read_text(), re.MULTILINE)
    assert rows == ORDER


@pytest.mark.skipif(shutil.which("patch") is None, reason="the tool patch is not installed")
def test_a_patched_op_is_ours(tmp_path: Path) -> None:
    """Operands, results, properties and effects of each op that a patch adds, and effects of each that it changes."""
    source = Path(str(xdsl.__file__)).parent
    for name in ("dialects", "transforms"):
        shutil.copytree(source / name, tmp_path / "xdsl" / name, ignore=shutil.ignore_patterns("__pycache__"))
    added: list[str] = []
    for name in ORDER:
        text = (FOLDER / f"{name}.patch").read_text()
        command = ["patch", "-p1", "-s", "-f", "-d", str(tmp_path)]
        applied = subprocess.run(command, input=_of_sources(text), capture_output=True, text=True)
        assert applied.returncode == 0, f"{name}: {applied.stdout}"
        added += re.findall(r'^\+    name = "([\w.]+)"', text, re.MULTILINE)
    for path in source.iterdir():
        if not (tmp_path / "xdsl" / path.name).exists():
            (tmp_path / "xdsl" / path.name).symlink_to(path)
    environment = os.environ | {"PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    read = subprocess.run(
        [sys.executable, "-c", READ], capture_output=True, text=True, env=environment, check=True, cwd=tmp_path
    )
    patched = json.loads(read.stdout)
    ours = {op.name: op for path in universe.UPSTREAM.values() for op in universe.load(path).operations}
    ops = [name for name in added if name in ours]
    assert len(ops) == 12, ops
    for name in ops:
        assert patched[name] == _described(ours[name]), name
    for name in ("load", "store", "maskedload", "maskedstore", "create_mask", "bitcast", "reduction"):
        assert patched[f"vector.{name}"][3] == _described(ours[f"vector.{name}"])[3] != [], name
    assert patched["affine.min"][3] == ["Pure"] and patched["arith.remui"][3] == ["NoMemoryEffect"]


def _of_sources(text: str) -> str:
    """A patch without its parts for tests."""
    head, *parts = re.split(r"(?=^diff --git )", text, flags=re.MULTILINE)
    return head + "".join(part for part in parts if part.startswith("diff --git a/xdsl/"))


def _described(op: type[IRDLOperation]) -> list[object]:
    definition = op.get_irdl_definition()
    effects = sorted(type(trait).__name__ for trait in op.traits if isinstance(trait, MemoryEffect))
    return [len(definition.operands), len(definition.results), sorted(definition.properties), effects]
