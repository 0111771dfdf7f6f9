"""`strata`, also `python -m compiler`: the command line; every error is a sentence on stderr and exit status 1."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from xdsl.utils.exceptions import ParseError, VerifyException

from compiler.cli import bench, build, check, db, explain, replay, run, space, tune
from compiler.cli.said import sentence
from compiler.errors import StrataError
from compiler.targets.machine import detected, host

COMMANDS = {
    "run": run,
    "build": build,
    "check": check,
    "bench": bench,
    "explain": explain,
    "space": space,
    "tune": tune,
    "replay": replay,
    "db": db,
}
NATIVE = ("run", "build", "bench", "explain", "space", "tune")
"""The commands that make code for this machine, or for the one that STRATA_MACHINE names."""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; 0, or 1 after an error that was said, or 130 after an interruption."""
    options = _arguments().parse_args(sys.argv[1:] if argv is None else list(argv))
    try:
        status: int = options.run(options)
        sys.stdout.flush()
        if options.native:
            _say_machine()
    except (StrataError, ParseError, VerifyException, RecursionError) as error:
        return _fail(sentence(error))
    except MemoryError:
        return _fail("there is not enough memory for this")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return _fail(sentence(error))
    except KeyboardInterrupt:
        print("strata: interrupted", file=sys.stderr)
        return INTERRUPTED
    return status


def _say_machine() -> None:
    """Say for which machine code was made, where it is not this one."""
    machine = host()
    if machine is not detected():
        print(f"strata: code for {machine.name}, vectors of {machine.vector_bits} bits", file=sys.stderr)


def _fail(said: str) -> int:
    print(f"strata: error: {said}", file=sys.stderr)
    return 1


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="strata", description="A multi-dialect tensor compiler.")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(name, help=command.HELP, description=command.HELP)
        command.add_arguments(sub)
        sub.set_defaults(run=command.run, native=name in NATIVE)
    return parser


if __name__ == "__main__":
    sys.exit(main())
