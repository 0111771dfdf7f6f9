"""`strata explain-rewrites FILE|NAME`: the laws that apply to a program, and the reasons why others do not."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from compiler.cli import program
from compiler.cli.build import error_argument
from compiler.cli.model import shape_argument
from compiler.cli.printing import input_error, show
from compiler.cli.values import scale
from compiler.support.errors import InputError
from compiler.types.policies import POLICIES

if TYPE_CHECKING:
    from compiler.alternatives import Conditions
    from compiler.graph.tree import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    help = "an MLIR file at the te level (- is standard input), an ONNX model, or a workload of bench"
    add("program", metavar="FILE|NAME", help=help)
    shape_argument(parser)
    add("--scale", type=scale, default=Fraction(1), help="multiply every extent of a workload: 1/4 or 0.25")
    add("--policy", choices=POLICIES, default="contract", help="liberties of floating point")
    error_argument(parser)


def run(options: argparse.Namespace) -> int:
    """Print for each public te function the laws that apply, and the reasons why others do not; return 0. Raises
    InputError for a program below te, and for one that does not verify."""
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.utils.exceptions import VerifyException

    from compiler.dialects.functions import functions
    from compiler.driver.parts.groups import te_module
    from compiler.graph.grouping import is_group
    from compiler.graph.read import read
    from compiler.pipeline.models import program_and_constants

    try:
        written, weights = program_and_constants(program.selected(options), None)
        module = te_module(written)
        if module is None:
            raise InputError(f"{options.program} is at another level than te: laws rewrite te functions")
        public = [function for function in functions(module) if not is_group(function)]
        for function in public:
            module_alone = written if len(public) == 1 else ModuleOp([function.clone()])
            show(f"@{function.sym_name.data}")
            for line in _program_lines(read(function), frozenset(weights or ()), options):
                show(f"  {line}")
            for line in _group_lines(module_alone, tuple(weights or ()), options):
                show(f"  {line}")
    except VerifyException as error:
        raise input_error(error, options.program) from error
    return 0


def _program_lines(graph: Graph, constants: frozenset[str], options: argparse.Namespace) -> Iterator[str]:
    """Yield for each law of whole functions its applications to a function, or the reasons why it does not apply;
    `constants` are the names of the function's constant inputs."""
    from compiler.alternatives import PROGRAM_LAWS
    from compiler.alternatives.explained import explanations
    from compiler.graph.canonical import canonical

    form = canonical(graph)
    fixed = frozenset(value.name for value in form.graph.inputs if form.names.values[value.name] in constants)
    yield from explanations(form.graph, replace(_conditions(options), constants=fixed), PROGRAM_LAWS, form.names)


def _group_lines(x: object, constants: tuple[str, ...], options: argparse.Namespace) -> Iterator[str]:
    """Yield for each law of groups its applications to the groups of a program, or the reasons why it does not apply.
    Laws of whole functions are applied first; `constants` are the names of the program's constant inputs."""
    from compiler.alternatives import GROUP_LAWS
    from compiler.alternatives.explained import NamedGroup, group_explanations
    from compiler.dialects.functions import find_function
    from compiler.driver.parts.groups import grouped_program
    from compiler.graph.read import read

    program_of_groups = grouped_program(x, constants, single=True, conditions=_conditions(options))
    named = []
    for group in () if program_of_groups is None else program_of_groups.groups:
        graph = read(find_function(group.module))
        named.append(NamedGroup(graph, frozenset(graph.inputs[n].name for n in group.constants), group.names))
    yield from group_explanations(named, _conditions(options), GROUP_LAWS)


def _conditions(options: argparse.Namespace) -> Conditions:
    from compiler.alternatives import Conditions
    from compiler.types.machines import host

    return Conditions(host(), options.policy, error=options.error)
