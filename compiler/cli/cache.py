"""`strata cache info|clear|path`: the cache of machine code."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from compiler.cli.printing import show
from compiler.driver.cache.folder import cache_folder
from compiler.driver.cache.store import Store
from compiler.support.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: a subcommand."""
    actions = parser.add_subparsers(title="actions", required=True, metavar="ACTION")

    def action(name: str, help: str, run_action: Callable[[], None]) -> None:
        actions.add_parser(name, help=help, description=help).set_defaults(run_action=run_action)

    action("info", "say where it is, whether it is used, and what it has", _info)
    action("clear", "remove all entries", _clear)
    action("path", "print its folder", lambda: show(str(_path())))


def run(options: argparse.Namespace) -> int:
    """Run the selected action; return 0."""
    options.run_action()
    return 0


def _path() -> Path:
    location = cache_folder()
    if location.path is None:
        raise InputError(f"there is no cache: {location.reason}")
    return location.path


def _info() -> None:
    location = cache_folder()
    if location.path is None:
        show(f"state    off: {location.reason}")
        return
    show(f"path     {location.path}")
    store = Store(location.path)
    try:
        summary = store.summary()
    except OSError as error:
        show(f"state    not used: {_reason(error)}")
        return
    show(f"state    on\nentries  {summary.entries}")
    show(f"bytes    {_mebibytes(summary.bytes)} of at most {_mebibytes(store.most_bytes)}")


def _clear() -> None:
    path = _path()
    try:
        removed = Store(path).clear()
    except OSError as error:
        raise InputError(f"{path} is not used as a cache: {_reason(error)}") from error
    show(f"removed {removed.entries} {'entry' if removed.entries == 1 else 'entries'}")


def _reason(error: OSError) -> str:
    return error.strerror or str(error)


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.4g} MiB"
