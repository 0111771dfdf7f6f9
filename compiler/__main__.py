"""`strata`, also `python -m compiler`: the command line; every error is a sentence on stderr and exit status 1."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from compiler import command

COMMANDS = ("run", "build", "check", "hash", "bench", "explain", "space", "tune", "replay", "db", "cache")
"""Each is a module of compiler.cli, which states its HELP and its arguments, and runs."""
NATIVE = ("run", "build", "bench", "explain", "space", "tune")
"""The commands that make code for this machine, or for the one that STRATA_MACHINE names."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0, or 1 after an error that was said, or 130 after an interruption."""
    return command.run("strata", lambda: _run(sys.argv[1:] if argv is None else list(argv)))


def _run(argv: Sequence[str]) -> int:
    from xdsl.utils.exceptions import ParseError, VerifyException

    from compiler.cli.said import sentence
    from compiler.errors import InputError

    options = arguments().parse_args(argv)
    try:
        status: int = options.run(options)
        if options.native:
            _say_machine()
    except (ParseError, VerifyException, RecursionError) as error:
        raise InputError(sentence(error)) from error
    return status


def _say_machine() -> None:
    """Say for which machine code was made, where it is not this one."""
    from compiler.targets.machine import detected, host

    machine = host()
    if machine is not detected():
        print(f"strata: code for {machine.name}, vectors of {machine.vector_bits} bits", file=sys.stderr)


def arguments() -> argparse.ArgumentParser:
    """The parser of all commands."""
    from importlib import import_module

    parser = argparse.ArgumentParser(prog="strata", description="A multi-dialect tensor compiler.")
    parser.add_argument("--version", action=command.Version)
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name in COMMANDS:
        module = import_module(f"compiler.cli.{name}")
        sub = commands.add_parser(name, help=module.HELP, description=module.HELP)
        module.add_arguments(sub)
        sub.set_defaults(run=module.run, native=name in NATIVE)
    return parser


if __name__ == "__main__":
    sys.exit(main())
