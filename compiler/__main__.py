"""`strata`, also `python -m compiler`: the command line; every error is a sentence on stderr and exit status 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from itertools import takewhile

from compiler.support import command, plugins
from compiler.support.spans import without_caller

COMMANDS = {
    "run": "build an MLIR file or an ONNX model, run it on random inputs, compare and time it",
    "build": "compile an MLIR file or an ONNX model and print or write it at a level",
    "check": "run the kernels of a program without a GPU: races, barriers, bounds, results, memory traffic",
    "verify": "check a library against its certificate: hashes, and the proofs of its schedules anew",
    "hash": "print a hash of what each te function of a file computes, which no name changes",
    "bench": "measure workloads beside other libraries, interleaved and checked",
    "explain": "show the innermost loops of the machine code, where the time goes, and the temporaries",
    "view": "write a page: the IR after each pass, loops, script, memory, machine code, proof",
    "explain-rewrites": "say for each law that is a choice where it applies to a program, or why it does not",
    "space": "show what the autotuner would choose from: sketches with their choices, candidates, scripts",
    "tune": "search for the fastest schedule of a program; ended at any moment, it keeps what it has",
    "worker": "build and time candidates for the tuners of a dask scheduler, until it is interrupted",
    "replay": "repeat a search from the log of strata tune, without measuring, and say what it found",
    "db": "list, replay, report, exchange and prune tuning records",
    "cache": "show or empty the cache of machine code",
    "plugins": "list what plugins add",
    "fuzz": "try random programs and scripts on the passes, primitives, laws and rules of plugins",
    "lsp": "serve an editor: diagnostics, hover, completion, the IR after each pass (the language server protocol)",
    "examples": "write the files that the pages show, such as examples/mm_exp_mm.mlir",
}
"""Map each command to its line of help. A command is a module of compiler.cli with `add_arguments` and `run`."""
NATIVE = ("run", "build", "bench", "explain", "view", "explain-rewrites", "space", "tune", "worker")
"""The commands that compile for the machine of `host()`; if it is not this one, a last line on stderr names it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command that the arguments (None: those of the process) name; return its exit status: 0, 1 after an
    error or an unsuccessful command, or 130 after an interruption."""
    given = sys.argv[1:] if argv is None else argv
    return command.run("strata", lambda: _run(given), given)


def _run(argv: Sequence[str]) -> int:
    _check_order(argv)
    options = arguments(next((word for word in argv if not word.startswith("-")), "")).parse_args(argv)

    from xdsl.utils.exceptions import ParseError, VerifyException

    from compiler.cli.printing import sentence
    from compiler.support.errors import InputError

    try:
        with plugins.loaded([*options.load, *getattr(options, "load_behind", ())]), without_caller():
            status: int = options.run(options)
        if options.native:
            _say_machine()
    except (ParseError, VerifyException, RecursionError) as error:
        raise InputError(sentence(error)) from error
    return status


def _check_order(argv: Sequence[str]) -> None:
    """Raise InputError for an option `--load` or `--debug` before the name of the command."""
    from compiler.support.errors import InputError

    before = list(takewhile(lambda word: word not in COMMANDS, argv))
    options = [word.partition("=")[0] for word in before if word.startswith("--")]
    misplaced = next((option for option in options if option in ("--load", "--debug")), None)
    if misplaced is not None:
        name = argv[len(before)] if len(before) < len(argv) else "COMMAND"
        file = " FILE" if misplaced == "--load" else ""
        raise InputError(f"{misplaced} stands behind the command: strata {name} {misplaced}{file}")


def _say_machine() -> None:
    """Print to stderr for which machine the command has compiled; nothing if it is this one."""
    from compiler.types.machines import detect_machine, host

    machine = host()
    if machine is not detect_machine():
        print(f"strata: code for {machine.name}, vectors of {machine.vector_bits} bits", file=sys.stderr)


def arguments(command_name: str | None = None) -> argparse.ArgumentParser:
    """Make the parser of all commands; with `command_name`, the other commands have no arguments, and their modules are
    not imported."""
    from importlib import import_module

    parser = command.Parser(prog="strata", description="A multi-dialect tensor compiler.")
    parser.add_argument("--version", action=command.Version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, help in COMMANDS.items():
        sub = commands.add_parser(name, help=help, description=help)
        if command_name in (None, name):
            module = import_module(f"compiler.cli.{name.replace('-', '_')}")
            sub.add_argument(
                "--load", action="append", default=[], metavar="FILE", help="a plugin: a file with register(registry)"
            )
            sub.add_argument("--debug", action="store_true", help="print the traceback of a plugin that crashes")
            module.add_arguments(sub)
            sub.set_defaults(run=module.run, native=name in NATIVE)
    return parser


if __name__ == "__main__":
    sys.exit(main())
