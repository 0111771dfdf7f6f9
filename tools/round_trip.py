"""Whether strata-opt prints the programs it reads as mlir-opt does: `python -m tools.round_trip FOLDER`.

Each piece of each .mlir file, between `// -----`, is read and printed by strata-opt, then by mlir-opt: the result must
be what mlir-opt prints for the piece itself. Pieces that mlir-opt refuses are counted apart. A piece belongs to the
folder of its file, such as the dialect in MLIR's own tests.
"""

from __future__ import annotations

import argparse
import io
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from compiler import opt

UNREGISTERED = "--allow-unregistered-dialect"


@dataclass(frozen=True)
class Outcome:
    """The outcome of a piece: "equal", "different", "refused", "traceback" or "not MLIR", with a reason of one line."""

    kind: str
    reason: str = ""


def pieces(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the pieces of a file, each with the line at which it begins."""
    line = 1
    for text in re.split(r"^// -----.*$", path.read_text("utf-8"), flags=re.MULTILINE):
        yield line, text
        line += text.count("\n")


def mlir_opt(program: str, text: str, options: Sequence[str] = ()) -> tuple[str, str]:
    """The text that mlir-opt prints for a program, and its error; the text is empty after an error."""
    command = [program, UNREGISTERED, *options]
    done = subprocess.run(command, input=text.encode(), capture_output=True, check=False)
    return ("" if done.returncode else done.stdout.decode(errors="replace")), done.stderr.decode(errors="replace")


def strata_opt(text: str, options: Sequence[str] = ()) -> tuple[str, str]:
    """The text that strata-opt prints for a program, and its error; the text is empty after an error."""
    printed, error = io.StringIO(), io.StringIO()
    with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file, redirect_stdout(printed), redirect_stderr(error):
        file.write(text)
        file.flush()
        try:
            status = opt.main([file.name, UNREGISTERED, *options])
        except Exception as fault:
            return "", f"Traceback: {type(fault).__name__}: {fault}"
    return ("" if status else printed.getvalue()), error.getvalue()


def outcome(program: str, text: str, options: Sequence[str] = ()) -> Outcome:
    """Compare what mlir-opt prints for a piece with what it prints for strata-opt's text of the piece; with
    `--mlir-print-debuginfo` among the options only positions are compared."""
    located = [name for name in options if name == "--mlir-print-debuginfo"]
    expected, error = mlir_opt(program, text, located)
    if not expected:
        return Outcome("not MLIR", _sentence(error))
    printed, error = strata_opt(text, options)
    if "Traceback" in error:
        return Outcome("traceback", error.strip().splitlines()[-1])
    if not printed:
        return Outcome("refused", _sentence(error))
    actual, error = mlir_opt(program, printed, located)
    if not actual:
        return Outcome("different", f"mlir-opt refuses what is printed: {_sentence(error)}")
    lines = zip(actual.splitlines(), expected.splitlines(), strict=False)
    if located or actual == expected:
        return Outcome("equal") if not located or _locations(actual) == _locations(expected) else Outcome("different")
    first = next((pair for pair in lines if pair[0] != pair[1]), ("fewer lines", "more lines"))
    return Outcome("different", f"{first[0].strip()} INSTEAD OF {first[1].strip()}")


def _locations(text: str) -> Counter[str]:
    """The positions in a text with locations, without the names of files."""
    return Counter(re.findall(r'"[^"]*":(\d+:\d+)', text))


def _sentence(error: str) -> str:
    """The first error in a text of diagnostics, without its location, and the op in the line that it quotes; the last
    line of a text without an error."""
    found = re.search(r"error: (.*)\n?(.*)", error)
    if found is None:
        return (error.strip().splitlines() or ["no sentence"])[-1]
    op = re.search(r"^(?:[^=:]* = )?\s*\"?([a-z]\w*\.[\w.]+)", found[2])
    return f"{found[1]} [{op[1]}]" if op else found[1]


def reason_kind(reason: str) -> str:
    """A reason with numbers and names of values blanked, to count reasons of one kind."""
    return re.sub(r"[%@#^][\w.$-]+|\d+", "_", reason)[:150]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the numbers of pieces of each folder by outcome, and the reasons by frequency."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mlir-opt", default="mlir-opt-22", help="the program that says what is right")
    parser.add_argument("--debuginfo", action="store_true", help="compare the positions of ops, too")
    parser.add_argument("--each", action="store_true", help="print each piece that is not equal")
    options = parser.parse_args(arguments)
    printing = ["--mlir-print-debuginfo"] if options.debuginfo else []
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[str] = Counter()
    for path in sorted(options.folder.rglob("*.mlir")):
        for line, text in pieces(path):
            result = outcome(options.mlir_opt, text, printing)
            counts[path.parent.name][result.kind] += 1
            if result.kind not in ("equal", "not MLIR"):
                reasons[f"{result.kind}: {reason_kind(result.reason)}"] += 1
                if options.each:
                    print(f"{path}:{line}: {result.kind}: {result.reason}", flush=True)
    kinds = ("equal", "different", "refused", "traceback", "not MLIR")
    counts["all"] = sum(counts.values(), Counter())
    print("".join(f"{title:>12}" for title in ("folder", *kinds)))
    for folder, row in counts.items():
        print(f"{folder:>12}" + "".join(f"{row[kind]:12}" for kind in kinds))
    for reason, count in reasons.most_common():
        print(f"{count:5}  {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
