"""strata-opt: read MLIR, run passes, print MLIR, LLVM IR or assembly; errors are located diagnostics.

command_line.py  the options, and --list-passes
source.py        splitting files into pieces
diagnostics.py   diagnostics of exceptions
expectations.py  --verify-diagnostics: expected and actual diagnostics
session.py       a run: each piece of the file through the passes

It uses xDSL's parser and printer; xDSL's own driver ends in tracebacks and is slow to start.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from compiler.support import command, plugins

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool on command-line arguments; return 0, 1 after an error, or 130 after an interruption.

    argv: None for the arguments of the process.

    >>> strata.opt.main(["missing.mlir"])
    1
    """
    given = sys.argv[1:] if argv is None else argv
    return command.run("strata-opt", lambda: _run(given), given)


def _run(argv: Sequence[str]) -> int:
    from compiler.opt.command_line import arguments, list_passes

    options = arguments().parse_args(argv)
    with plugins.loaded(options.load):
        if options.list_passes:
            list_passes()
            return 0
        from compiler.opt.session import Session

        return Session(options).run()
