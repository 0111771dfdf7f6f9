"""`strata plugins`: list the parts of plugins."""

from __future__ import annotations

import argparse

from compiler.cli.printing import show
from compiler.support import plugins


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments: none."""


def run(options: argparse.Namespace) -> int:
    """Print the parts of each plugin, kind and name, or a hint if there is none; return 0."""
    registries = plugins.registries()
    if not registries:
        print("no plugin is installed or loaded: docs/plugins.md says how to write one, --load FILE loads one")
    for registry in registries:
        show(f"{registry.plugin}:")
        for part in registry.parts:
            show(f"  {part.kind:15} {part.name}")
    return 0
