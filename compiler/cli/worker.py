"""`strata worker tcp://HOST:PORT`: build and time candidates for the tuners of a dask scheduler."""

from __future__ import annotations

import argparse

from compiler.cli.values import positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("scheduler", metavar="URL", help="the address of the scheduler, such as tcp://host:8786")
    add("--builders", type=positive, metavar="N", help="candidates that are built at once (default: the cores)")
    add("--no-timing", action="store_true", help="build only, and let other workers time")
    add("--once", action="store_true", help="end when the scheduler ends, instead of waiting for another one")


def run(options: argparse.Namespace) -> int:
    """Build and time candidates until an interruption, or with `--once` until the scheduler ends; return 0. Raises
    InputError where dask is missing or the address is malformed."""
    from compiler.autotune.fleet.serve import serve

    serve(options.scheduler, options.builders, not options.no_timing, options.once)
    return 0
