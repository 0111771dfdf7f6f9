"""`strata bench NAME...`: the benchmarks' command, where there is a checkout; elsewhere a sentence."""

from __future__ import annotations

import argparse

from compiler.cli.checkout import benchmarks
from compiler.errors import InputError

HELP = "measure workloads beside other libraries, interleaved and checked (in a checkout)"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State the command's arguments."""
    try:
        benchmarks().add_arguments(parser)
    except InputError:
        parser.add_argument("names", nargs=argparse.REMAINDER, metavar="NAME", help="a workload")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    status: int = benchmarks().run(options)
    return status
