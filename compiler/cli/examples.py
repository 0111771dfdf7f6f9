"""`strata examples [FOLDER]`: write the files that the pages show."""

from __future__ import annotations

import argparse

from compiler.cli.printing import show
from compiler.support.errors import InputError
from compiler.support.files import named, reading, writing


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State the command's arguments."""
    said = "where to write them (default: %(default)s); what is there is not overwritten"
    parser.add_argument("folder", nargs="?", default="examples", metavar="FOLDER", help=said)


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from compiler.examples import FILES, path

    folder = named(options.folder)
    contents = {folder / name: path(name).read_bytes() for name in FILES}
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for place, content in contents.items():
        with reading(place):
            if place.exists() and place.read_bytes() != content:
                raise InputError(f"{place} is another file: give a folder that does not have it")
    for place, content in contents.items():
        with writing(place):
            if not place.exists():
                place.write_bytes(content)
        show(f"{place}: {FILES[place.name]}")
    return 0
