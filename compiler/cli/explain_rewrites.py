"""`strata explain-rewrites FILE|NAME`: for each law that is a choice where it applies, or why it does not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING

from compiler.cli import program
from compiler.cli.model import shape_argument
from compiler.cli.printing import refused, show
from compiler.cli.values import scale
from compiler.support.errors import InputError
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from compiler.graph.tree import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """State the command's arguments."""
    add = parser.add_argument
    said = "an MLIR file at the te level (- is standard input), an ONNX model, or a workload of bench"
    add("program", metavar="FILE|NAME", help=said)
    shape_argument(parser)
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent of a workload: 1/4 or 0.25")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    add("--error", type=float, metavar="E", help="the error that is accepted (default: the written form's)")


def run(options: argparse.Namespace) -> int:
    """Run the command."""
    from xdsl.utils.exceptions import VerifyException

    from compiler.dialects.functions import functions
    from compiler.driver.parts.groups import te_module
    from compiler.graph.grouping import is_group
    from compiler.graph.read import read
    from compiler.pipeline import apart

    try:
        written, weights = apart(program.given(options), None)
        module = te_module(written)
        if module is None:
            raise InputError(f"{options.program} is at another level than te: laws rewrite te functions")
        for function in functions(module):
            if is_group(function):
                continue
            show(f"@{function.sym_name.data}")
            for line in _lines(read(function), frozenset(weights or ()), options):
                show(f"  {line}")
    except VerifyException as error:
        raise refused(error, options.program) from error
    return 0


def _lines(graph: Graph, constants: frozenset[str], options: argparse.Namespace) -> Iterator[str]:
    """What the laws of each scope say of a function: those of whole functions; those of groups belong here as well."""
    from compiler.alternatives import PROGRAM_LAWS
    from compiler.alternatives.explained import explanations
    from compiler.alternatives.law import Conditions
    from compiler.graph.canonical import canonical
    from compiler.types.machines import host

    form = canonical(graph)
    fixed = {value.name for value in form.graph.inputs if form.names.values[value.name] in constants}
    conditions = Conditions(host(), options.policy, frozenset(fixed), options.error)
    yield from explanations(form.graph, conditions, PROGRAM_LAWS, form.names)
