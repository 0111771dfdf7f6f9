"""What recipes import: nothing but what the recipes of users can."""

import ast
from pathlib import Path

import pytest

from compiler import recipes

ROOM = Path(recipes.__file__).parent
ALLOWED = {
    "compiler.affine.linear": "the forms of indices",
    "compiler.analysis.barriers": "the attribute of loops whose copies are asynchronous",
    "compiler.analysis.order": "the steps of accesses, and the order of loops without a schedule",
    "compiler.analysis.rows": "which blocks share rows",
    "compiler.dialects.access": "the axes of blocks",
    "compiler.intrinsics": "declared instructions by name",
    "compiler.intrinsics.warp": "the extents of MMA tiles",
    "compiler.program.body": "the scalars of bodies",
    "compiler.program.tree": "blocks, loops and accesses",
    "compiler.schedule": "Schedule, Handle, Size",
    "compiler.support.errors": "ScheduleError",
    "compiler.types.elements": "the bytes of elements",
    "compiler.types.machines": "the facts of machines",
}
"""The modules beside other recipes that a recipe imports, and for what."""
RULES = {"compiler.support.plugins": "rules.py adds the rules of plugins"}


def imports(text: str) -> set[str]:
    """The modules of ours that a text imports names from, and `module.name` for each private name."""
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(isinstance(node, ast.ImportFrom) for node in nodes)
    modules = [(node.module or "", alias.name) for node in nodes for alias in node.names]  # type: ignore[union-attr]
    ours = [(module, name) for module, name in modules if module.startswith("compiler")]
    return {f"{module}.{name}" if name.startswith("_") else module for module, name in ours}


def foreign(text: str) -> set[str]:
    """What a recipe imports that is neither allowed nor another recipe's."""
    return {name for name in imports(text) - ALLOWED.keys() if not name.startswith("compiler.recipes.") or "._" in name}


@pytest.mark.parametrize("path", sorted(ROOM.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOM)))
def test_recipes_import_what_users_may(path: Path) -> None:
    assert foreign(path.read_text()) <= (RULES.keys() if path.name == "rules.py" else set())


def test_each_module_that_is_allowed_is_used() -> None:
    used = set().union(*(imports(path.read_text()) for path in ROOM.rglob("*.py")))
    assert ALLOWED.keys() | RULES.keys() == {name for name in used if not name.startswith("compiler.recipes")}


@pytest.mark.parametrize(
    "line",
    [
        "from compiler.schedule.schedule import Handle",
        "from compiler.schedule import _Includer",
        "from compiler.recipes.product import _tiles",
        "def f():\n    from compiler.space.sketch import Sketch",
    ],
)
def test_another_import_is_seen(line: str) -> None:
    assert len(foreign(line)) == 1
