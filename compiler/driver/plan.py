"""`of_groups`: how a program whose function calls others is compiled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.builtin import ModuleOp

from compiler.analysis.combiners import check_combiners
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function
from compiler.driver.inputs import all_constants, by_name, face_of
from compiler.driver.main.assemble import Assembled, assembled
from compiler.driver.recipe import Recipe, Texts
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.graph.main import read_tensors
from compiler.program.tree import Program
from compiler.targets.cpu.facts import GroupFacts


@dataclass(frozen=True)
class BuildPlan:
    """What is compiled of a program: a module of groups, with their schedules and their canonical hashes by their
    names, where they have any; or a module of one function at any level.

    group: what a kernel of one function says of it, its seconds apart; without it the kernel has no groups. tree: its
    scheduled loops, which have its arguments, where it is not compiled as written.
    """

    module: ModuleOp
    sources: Mapping[str, Scheduled] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    group: GroupFacts | None = None
    tree: Program | None = None


def of_groups(
    x: object, plan: BuildPlan, name: str | None, constants: Mapping[str, object], settings: BuildSettings, team: Team
) -> Recipe:
    """How to compile a te module of groups. Raises InputError for constants that are no inputs, or are known, and for
    regions that are no combiners."""
    check_combiners(plan.module)
    function = find_function(plan.module, name)
    main = read_tensors(function)
    face, values = face_of(main), constant_values(function)
    stated = {main.inputs[n].name: value for n, value in values.items()}
    given = all_constants(by_name(x, face, constants), stated)
    names = [buffer.name for buffer in main.inputs if buffer.name in given]

    @cache
    def made() -> Assembled:
        return assembled(plan.module, plan.sources, settings, team, names, name, plan.hashes)

    inner_constants = {name: DenseAttr(dense) for name, dense in main.elements.items()}
    return Recipe(face, stated | inner_constants, lambda: made().linked, lambda: Texts(made().texts))
