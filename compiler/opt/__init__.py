"""strata-opt: read MLIR, run passes, print MLIR, LLVM IR or assembly; errors are located diagnostics.

command_line.py  the options
spelling.py      mlir-opt's spellings of them, and passes as options
listing.py       the lists of passes, of their options and of dialects; completion in shells
source.py        splitting files into pieces
bytecode.py      MLIR's bytecode, by mlir-opt
diagnostics.py   diagnostics of exceptions
expectations.py  --verify-diagnostics: expected and actual diagnostics
printing.py      the text of a module
instruments.py   IR around passes, times, statistics
actions.py       logs, traces and counters of passes, laws and steps of scripts
reproducers.py   a module and its pipeline in one file
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
    from compiler.opt import listing
    from compiler.opt.command_line import arguments
    from compiler.opt.spelling import normalized

    parser = arguments()
    with plugins.loaded(_plugins(argv)):
        options = parser.parse_args(normalized(argv, parser))
        if options.help == "":
            parser.print_help()
            return 0
        lists = {
            "help": lambda: listing.pass_help(options.help),
            "list_passes": listing.passes,
            "list_foreign_passes": listing.foreign_passes,
            "show_dialects": lambda: [listing.dialects()],
            "completion": lambda: [listing.completion(options.completion, parser)],
        }
        for name, lines in lists.items():
            if getattr(options, name):
                print("\n".join(lines()))
                return 0
        from compiler.opt.session import Session

        return Session(options).run()


def _plugins(argv: Sequence[str]) -> list[str]:
    """The files of the options that load plugins, whose passes are options, too."""
    files = list[str]()
    for position, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if word.startswith("-") and name.lstrip("-") in ("load", "load-pass-plugin", "load-dialect-plugin"):
            files += [value] if equals else argv[position + 1 : position + 2]
    return files
