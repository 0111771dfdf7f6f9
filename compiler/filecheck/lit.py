"""strata-lit: run FileCheck files from the shell, in one process, as LLVM's lit.

strata-lit tests/filecheck
strata-lit tests/filecheck --filter tile -v
strata-lit --update tests/filecheck/mine.mlir
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter

import compiler
from compiler.support import command
from compiler.support.errors import InputError
from compiler.support.files import write
from compiler.support.text import counted, printable


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool on command-line arguments (None: those of the process); return 0, 1 after a failure or an error, or
    130 after an interruption."""
    words = sys.argv[1:] if argv is None else argv
    return command.run("strata-lit", lambda: _run(words), words)


def _arguments() -> argparse.ArgumentParser:
    parser = command.Parser(prog="strata-lit", description="Run FileCheck tests: files with RUN lines.")
    add = parser.add_argument
    add("paths", nargs="+", metavar="PATH", help="files, and folders with .mlir files")
    add("-v", "--verbose", action="store_true", help="print what failed, and each file that passed")
    add("--filter", metavar="REGEX", default="", help="run the files whose path matches")
    add("--max-failures", type=int, metavar="N", help="end after N failures")
    add("-D", dest="substitutions", action="append", default=[], metavar="NAME=TEXT", help="what %%{NAME} stands for")
    update = "write the CHECK lines of files anew, from the output of their RUN lines"
    add("-u", "--update", "--generate-checks", action="store_true", help=update)
    add("--version", action="version", version=f"strata-lit {compiler.__version__}")
    return parser


def _run(words: Sequence[str]) -> int:
    options = _arguments().parse_args(words)
    try:
        pattern = re.compile(options.filter)
    except re.error as error:
        raise InputError(f"argument --filter: '{options.filter}': {error}") from error
    files = [path for path in _files(options.paths) if pattern.search(str(path))]
    if not files:
        raise InputError("there is no file with RUN lines")
    substitutions = dict(_substitution(text) for text in options.substitutions)
    start, results, failed = perf_counter(), Counter[str](), list[str]()
    for number, path in enumerate(files, 1):
        result, message = _result(path, substitutions, options.update)
        results[result] += 1
        failed += [str(path)] * (result == "FAIL")
        if options.verbose or result == "FAIL":
            print(f"{result}: {path} ({number} of {len(files)})")
        if message and options.verbose:
            print(printable(message), file=sys.stderr)
        if options.max_failures is not None and len(failed) >= options.max_failures:
            break
    print(f"{counted(sum(results.values()), 'test')} in {perf_counter() - start:.1f} s: {_summary(results)}")
    return int(bool(failed))


def _result(path: Path, substitutions: dict[str, str], update: bool) -> tuple[str, str]:
    """Run or update a file; return PASS, FAIL, UNSUPPORTED, UPDATED or UNCHANGED, and the message of a failure, else
    ""."""
    from compiler.filecheck.generate import updated
    from compiler.filecheck.payload import FileCheckError
    from compiler.filecheck.runner import Unsupported, check

    try:
        if update:
            text = updated(path, substitutions)
            changed = text != path.read_text(encoding="utf-8")
            if changed:
                write(path, [text])
            return ("UPDATED" if changed else "UNCHANGED"), ""
        check(path, substitutions)
    except Unsupported as error:
        return "UNSUPPORTED", str(error)
    except FileCheckError as error:
        return "FAIL", str(error)
    return "PASS", ""


def _summary(results: Counter[str]) -> str:
    return ", ".join(f"{count} {result.lower()}" for result, count in sorted(results.items()))


def _substitution(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not re.fullmatch(r"[\w.-]+", name):
        raise InputError(f"argument -D: '{text}' is not NAME=TEXT")
    return name, value


def _files(paths: Sequence[str]) -> Iterator[Path]:
    """Yield the files, and the .mlir files of the folders that have RUN lines and are no payloads. Raises InputError
    for a missing path."""
    from compiler.filecheck.payload import FOLDER

    for path in map(Path, paths):
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*.mlir") if FOLDER not in p.parts and _has_run_line(p))
        elif path.exists():
            yield path
        else:
            raise InputError(f"{path} does not exist")


def _has_run_line(path: Path) -> bool:
    return "RUN:" in path.read_text(encoding="utf-8", errors="replace")
