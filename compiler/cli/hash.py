"""`strata hash FILE`: the canonical hash of each te function."""

from __future__ import annotations

import argparse

from compiler.cli import program
from compiler.cli.model import shape_argument
from compiler.cli.printing import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.add_argument("file", metavar="FILE", help="an MLIR file at the te level, - is standard input; an ONNX model")
    shape_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print the canonical hash and name of each te function, one line each; return 0. Raises InputError for a program
    below te, and for a file that cannot be read, ParseError and VerifyException for an invalid one."""
    from compiler.graph.canonical import canonical_functions
    from compiler.pipeline.source import check_is_program

    module = program.module(options.file, options.shape)
    check_is_program(module)
    for name, form in canonical_functions(module).items():
        show(f"{form.hash} {name}")
    return 0
