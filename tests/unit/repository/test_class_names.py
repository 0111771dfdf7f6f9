"""Classes of the rooms between te and a kernel have names of their own."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import compiler

ROOMS = (
    "affine",
    "alternatives",
    "analysis",
    "autotune",
    "database",
    "driver",
    "graph",
    "intrinsics",
    "lowering",
    "passes",
    "pipeline",
    "program",
    "schedule",
    "space",
    "support",
    "targets",
    "types",
)


def test_class_names_are_unique() -> None:
    """Private classes apart."""
    root = Path(compiler.__file__).parent
    files = defaultdict(list)
    for room in ROOMS:
        for path in (root / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    files[node.name].append(str(path.relative_to(root)))
    assert {name: paths for name, paths in files.items() if len(paths) > 1} == {}
