"""How many of the assigned names say nothing: `python tools/vague.py [FOLDER ...]`.

A name is assigned by an assignment, a loop, a comprehension, `with`, `except`, `match` or a parameter. It is vague if
it is one of the words below without a noun: `found` is vague, `found_axis` is not.
"""

from __future__ import annotations

import argparse
import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

VAGUE = {"data", "found", "held", "item", "items", "known", "least", "one", "ones", "other", "others", "own", "rest"}
VAGUE |= {"result", "results", "thing", "things", "whole"}
"""The words that do not say what a name holds."""


def assigned(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The names that a file assigns, each with its line: variables, parameters, attributes, not `self` or `_`."""
    return ((line, name) for line, name in _stored(tree) if name not in ("self", "cls", "_"))


def _stored(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.lineno, node.name


def vague(tree: ast.AST) -> list[tuple[int, str]]:
    """The assigned names of a file that are vague, each with its line."""
    return sorted((line, name) for line, name in assigned(tree) if _is_vague(name))


def _is_vague(name: str) -> bool:
    return name.strip("_") in VAGUE


def share(texts: Iterable[str]) -> float:
    """The fraction of the assigned names of some files that is vague."""
    names = [name for text in texts for _, name in assigned(ast.parse(text))]
    return sum(map(_is_vague, names)) / max(1, len(names))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the share of vague names of each folder, and with `--lines` where they are."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(f) for f in ("compiler", "tools", "tests")])
    parser.add_argument("--lines", action="store_true", help="print each vague name as FILE:LINE: NAME")
    options = parser.parse_args(arguments)
    for folder in options.folders:
        files = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
        texts = {path: path.read_text("utf-8") for path in files}
        names = {path: vague(ast.parse(text)) for path, text in texts.items()}
        if options.lines:
            print("\n".join(f"{path}:{line}: {name}" for path in files for line, name in names[path]))
        words = Counter(name for path in files for _, name in names[path])
        print(f"{folder}: {share(texts.values()):.2%} of the assigned names are vague: {dict(words.most_common())}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
