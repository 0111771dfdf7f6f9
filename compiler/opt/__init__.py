"""strata-opt: read MLIR, run passes, print MLIR, LLVM IR or assembly; every error is a sentence and a place.

command_line.py   the options, and --list-passes
source.py         splitting files, parsing with the place of every op
diagnostics.py    from exceptions to sentences with a place
expected.py       --verify-diagnostics: what the comments announce against what was found
session.py        one run: each piece of the file through the passes

Over xDSL's parser, pass options and printer; its own driver ends in tracebacks and is slow to start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from compiler.errors import StrataError
from compiler.opt.command_line import arguments, list_passes
from compiler.text_file import read

__all__ = ["main", "read"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool on command-line arguments; 0, or 1 after an error that was said on stderr."""
    try:
        options = arguments().parse_args(argv)
        if options.list_passes:
            list_passes()
            return 0
        from compiler.opt.session import Session

        return Session(options).run()
    except StrataError as error:
        print(f"strata-opt: error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        _stop_writing()
        return 1


def _stop_writing() -> None:
    """Send what the interpreter still flushes at exit nowhere: nobody reads it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        os.dup2(nowhere, stream.fileno())
