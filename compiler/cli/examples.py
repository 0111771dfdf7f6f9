"""`strata examples [FOLDER]`: write the example files of the documentation."""

from __future__ import annotations

import argparse

from compiler.cli.printing import show
from compiler.support.errors import InputError
from compiler.support.files import read_errors, to_path, write_errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    help = "where to write them (default: %(default)s); what is there is not overwritten"
    parser.add_argument("folder", nargs="?", default="examples", metavar="FOLDER", help=help)


def run(options: argparse.Namespace) -> int:
    """Write the example files that the folder lacks; return 0. Raises InputError, and writes none, if the folder has a
    file of the same name with other contents; also if it cannot be written."""
    from compiler.examples import FILES, path

    folder = to_path(options.folder)
    contents = {folder / name: path(name).read_bytes() for name in FILES}
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for target, content in contents.items():
        with read_errors(target):
            if target.exists() and target.read_bytes() != content:
                raise InputError(f"{target} is another file: give a folder that does not have it")
    for target, content in contents.items():
        with write_errors(target):
            if not target.exists():
                target.write_bytes(content)
        show(f"{target}: {FILES[target.name]}")
    return 0
