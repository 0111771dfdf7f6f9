"""Lines of each room beside its budget: `python tools/lines.py`; 1 where a room is above it.

The budgets are in tools/lines.toml; a change that needs more lines raises one in the same commit. `--fit` writes
budgets that fit what is there: the next multiple of 100. The core, of which docs/reading.md states the files and the
budget, has a row of its own, and one with all that has to be opened beside it.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = ROOT / "tools" / "lines.toml"
KINDS = {".py", ".pyi", ".md", ".mlir"}
"""The suffixes of the files that count."""
DIVIDED = ("compiler", "tests")
"""The folders whose own folders are rooms; their other files are one room."""
FOLDERS = (*DIVIDED, "strata", "benchmarks", "docs", "examples", "tools")
STEP = 100


def count(paths: Iterable[Path]) -> int:
    """The lines of some files."""
    return sum(len(path.read_text("utf-8").splitlines()) for path in paths)


def room_of(path: Path) -> str:
    """The room of a file, given relative to the repository: compiler/te/nn/pool.py is in compiler/te."""
    return "/".join(path.parts[:2]) if path.parts[0] in DIVIDED and len(path.parts) > 2 else path.parts[0]


def rooms(root: Path = ROOT) -> dict[str, int]:
    """Map each room to the lines of its files of KINDS, sorted by name."""
    lines: Counter[str] = Counter()
    for path in (path for folder in FOLDERS for path in (root / folder).rglob("*")):
        if path.suffix in KINDS and path.is_file():
            lines[room_of(path.relative_to(root))] += count([path])
    return dict(sorted(lines.items()))


def files_of(table: str) -> list[Path]:
    """The files that match the paths in backticks of a table. Raises AssertionError for a path without a file."""
    matches = {glob: sorted(ROOT.glob(glob)) for glob in re.findall(r"`(compiler/[^`]+)`", table)}
    missing = [glob for glob, paths in matches.items() if not paths]
    if missing:
        raise AssertionError(f"no such files: {', '.join(missing)}")
    return [path for paths in matches.values() for path in paths]


def core() -> tuple[list[Path], int]:
    """Return the files of the core and the most lines of it, both from docs/reading.md. Raises AssertionError if the
    page states no budget."""
    text = (ROOT / "docs" / "reading.md").read_text("utf-8")
    most = re.search(r"at\s+most ([\d,]+) lines", text)
    _, read, leave_out, *_ = re.split(r"(?=^\| \| read|^\| leave out|^## )", text, flags=re.MULTILINE)
    if most is None:
        raise AssertionError("docs/reading.md states no budget")
    return sorted({*files_of(read)} - {*files_of(leave_out)}), int(most[1].replace(",", ""))


def opened(files: Iterable[Path]) -> tuple[list[Path], int]:
    """Return the files of the core with all primitives and the modules that it imports, and the most lines of these,
    from docs/reading.md. Raises AssertionError if the page states no budget."""
    text = (ROOT / "docs" / "reading.md").read_text("utf-8")
    most = re.search(r"in\s+all\s+at\s+most\s+([\d,]+)", text)
    if most is None:
        raise AssertionError("docs/reading.md states no budget of all that has to be opened")
    core_files = {*files, *(ROOT / "compiler" / "schedule" / "primitives").rglob("*.py")}
    return sorted(core_files.union(*map(imported, core_files))), int(most[1].replace(",", ""))


def imported(file: Path) -> set[Path]:
    """The modules of the compiler that a file imports."""
    modules: set[Path] = set()
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("compiler"):
            base = ROOT / node.module.replace(".", "/")
            modules |= {base.with_suffix(".py"), *((base / name.name).with_suffix(".py") for name in node.names)}
            modules.add(base / "__init__.py")
    return {module for module in modules if module.is_file()}


def above(lines: Mapping[str, int], budgets: Mapping[str, int]) -> Iterator[str]:
    """A sentence for each room above its budget, or without one, and for each budget without a room."""
    for room, number in lines.items():
        if room not in budgets:
            yield f"{room} has no budget"
        elif number > budgets[room]:
            yield f"{room} has {number:,} lines, {number - budgets[room]:,} more than its budget"
    yield from (f"{room} has a budget and no lines" for room in budgets if room not in lines)


def main(arguments: list[str]) -> int:
    """Print the table, with --fit after writing budgets that fit; return 1 if a room is above its budget."""
    lines = rooms()
    if arguments == ["--fit"]:
        fitted = [f'"{room}" = {-(-number // STEP) * STEP}\n' for room, number in lines.items()]
        BUDGETS.write_text("# The most lines of each room: see tools/lines.py.\n" + "".join(fitted))
    elif arguments:
        sys.exit(f"{__doc__}")
    (files, most), budgets = core(), tomllib.loads(BUDGETS.read_text("utf-8"))
    every, most_opened = opened(files)
    lines |= {"core": count(files), "core, with what it opens": count(every)}
    budgets |= {"core": most, "core, with what it opens": most_opened}
    for room, number in lines.items():
        print(f"{room:26} {number:8,} of {budgets.get(room, 0):8,}")
    faults = list(above(lines, budgets))
    for sentence in faults:
        print(f"{sentence}: shorten it, or raise the budget in the same commit", file=sys.stderr)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
