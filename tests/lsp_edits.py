"""Random edits of FileCheck files, as while typing, and what the language server's features may give for them.

`python -m tests.lsp_edits --cases 500` tries them from a seed that it prints, and writes the texts that fail to files.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from time import perf_counter

from compiler.lsp import completion, lenses, navigation, symbols
from compiler.lsp.analysis import Finding
from compiler.lsp.checks import deep_findings
from compiler.lsp.hover import hover
from compiler.lsp.snapshot import Snapshot
from compiler.lsp.text import TextRange
from compiler.support.errors import InputError

FILES = sorted((Path(__file__).parent / "filecheck").rglob("*.mlir"))
INSERTED = [*'%@}{("\\#!-\t\0\f\r\n', "// -----\n", "é𝒳", "^bb0", "1e99", "func.func", "%0", 'loop.for "i" %i = 4 {']
INSERTED += [
    "// RUN: strata-opt %s -p ",
    "// PAYLOAD: ",
    "::",
    "\u2028",
    "transform.named_sequence @s(",
    "expected-error",
]
"""Texts that edits insert."""


def edited(text: str, rng: random.Random) -> str:
    """A text after one to three edits: cut off, a part removed, inserted or repeated."""
    for _ in range(rng.randint(1, 3)):
        start = rng.randrange(len(text) + 1)
        end = min(len(text), start + rng.randint(0, 30))
        again = text[end : end + rng.randint(0, 60)]
        text = rng.choice(
            [
                text[:start],
                text[:start] + text[end:],
                text[:start] + rng.choice(INSERTED) + text[start:],
                text[:start] + again + text[start:],
                text[end:],
            ]
        )
    return text


def check(path: Path, text: str, rng: random.Random, is_deep: bool = False) -> Snapshot:
    """Ask every feature about a text at random offsets; each range that it gives must be in the text. Returns the
    snapshot. `is_deep`: also run the passes of RUN lines."""
    snapshot = Snapshot.of(path, text)
    _check_findings(text, [*snapshot.findings, *(deep_findings(snapshot) if is_deep else ())])
    for offset in {rng.randrange(len(text) + 1) for _ in range(8)}:
        _check_offset(snapshot, offset)
    _check_symbols(text, symbols.outline(snapshot))
    _check_ranges(text, (part for part, _ in symbols.folds(snapshot)))
    _check_ranges(text, (lens.range for lens in lenses.lenses(snapshot)))
    for fix in lenses.expectations(snapshot, snapshot.findings, TextRange(0, len(text))):
        assert 0 <= fix.offset <= len(text)
    return snapshot


def _check_offset(snapshot: Snapshot, offset: int) -> None:
    text = snapshot.text
    explained = hover(snapshot, offset)
    if explained is not None:
        assert explained.text and explained.range.touches(offset)
        _check_ranges(text, [explained.range])
    _check_ranges(text, navigation.definitions(snapshot, offset))
    _check_ranges(text, navigation.references(snapshot, offset))
    for proposal in completion.completions(snapshot, offset):
        assert proposal.label and proposal.range.touches(offset)
        _check_ranges(text, [proposal.range])
    with suppress(InputError):
        _check_ranges(text, (part for part, _ in navigation.renamed(snapshot, offset, "zz")))
    line, column = snapshot.lines.position(offset)
    assert snapshot.lines.offset(line, column) in (offset, offset - 1)  # between \r and \n is the end of the line


def _check_findings(text: str, findings: Iterable[Finding]) -> None:
    for finding in findings:
        assert finding.sentence and "Traceback" not in finding.sentence
        _check_ranges(text, [finding.range, *(place.range for place in finding.related)])


def _check_symbols(text: str, outline: Iterable[symbols.OutlineSymbol]) -> None:
    for symbol in outline:
        assert (
            symbol.name and symbol.range.start <= symbol.name_range.start <= symbol.name_range.end <= symbol.range.end
        )
        _check_ranges(text, [symbol.range])
        _check_symbols(text, symbol.children)


def _check_ranges(text: str, ranges: Iterable[TextRange]) -> None:
    for part in ranges:
        assert 0 <= part.start <= part.end <= len(text), part


def main(arguments: list[str]) -> int:
    """Try random edits; print the time of a snapshot, and the failures; return 1 after one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--deep", action="store_true", help="also run the passes of RUN lines")
    options = parser.parse_args(arguments)
    rng, seconds, failures = random.Random(options.seed), [], 0
    for case in range(options.cases):
        path = rng.choice(FILES)
        text = edited(path.read_text(), rng)
        start = perf_counter()
        try:
            check(path, text, rng, options.deep)
        except Exception:
            failures += 1
            traceback.print_exc(limit=-4)
            with tempfile.NamedTemporaryFile(
                "w", suffix=".mlir", errors="surrogatepass", prefix=f"case{case}_", delete=False
            ) as file:
                file.write(text)
            print(f"{path}: written to {file.name}")
        seconds.append(perf_counter() - start)
    worst = sorted(seconds)[int(0.95 * len(seconds))]
    print(f"seed {options.seed}: {options.cases} edits, {failures} failures, 95% within {worst * 1e3:.0f} ms")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
