"""docs/explain.md: each ```console block is a command line of `strata` with its output.

python -m tools.explain_page    # run the commands, write what they print

Times and machine code differ: `shape` is the part that must be the same wherever and whenever the commands run.
"""

from __future__ import annotations

import io
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path

from compiler.__main__ import main as strata

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "explain.md"
BLOCK = re.compile(r"^```console\n\$ strata (.*)\n((?:.*\n)*?)```\n", re.MULTILINE)


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the command lines of a page, without the name of the program, each with its output on the page."""
    return BLOCK.findall(text)


def run(command: str) -> str:
    """Return the output of a command, run from the root of the repository. Raises AssertionError if it ends with an
    error."""
    printed = io.StringIO()
    with chdir(ROOT), redirect_stdout(printed):
        status = strata(shlex.split(command))
    assert status == 0, f"strata {command} ended with {status}"
    return printed.getvalue()


def shape(printed: str) -> list[str]:
    """Return the lines of an explanation without measured figures, and without figures that LLVM and the processor
    decide: the words of headings, the loops and blocks of the time table, and all of the table of temporaries."""
    kept: list[str] = []
    for paragraph in re.split(r"\n\s*\n", printed.strip("\n")):
        lines = paragraph.splitlines()
        if re.match(r"loop +blocks", lines[0]):
            kept += [" ".join(re.split(r"\s{2,}", line.strip())[:2]) for line in lines]
        elif re.match(r"buffer +elements", lines[0]):
            kept += lines
        elif not re.match(r"# +loop|loop \d", lines[0]):
            kept += [word[0] for line in lines if (word := re.match(r"[A-Z][A-Za-z ]+|@\w+", line))]
    return kept


def main() -> None:
    """Write the page with the current output of its commands."""
    text = PAGE.read_text("utf-8")
    PAGE.write_text(BLOCK.sub(lambda m: f"```console\n$ strata {m[1]}\n{run(m[1]).strip(chr(10))}\n```\n", text))


if __name__ == "__main__":
    main()
