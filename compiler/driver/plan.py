"""`BuildPlan`: the modules and schedules to compile; `group_recipe`: the recipe of a program of groups."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from xdsl.dialects.builtin import ModuleOp

from compiler.analysis.combiners import check_combiners
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function
from compiler.driver.inputs import merged_constants, renamed_constants, signature_of
from compiler.driver.main.assemble import Assembled, assembled
from compiler.driver.recipe import Recipe, Texts
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.graph.main import read_tensors
from compiler.program.tree import Program
from compiler.targets.groups import GroupFacts


@dataclass(frozen=True)
class BuildPlan:
    """The input of a compilation: a module of groups, or a module of one function at any level.

    sources: the schedules of groups, by name; groups without one are compiled as written. hashes: the known canonical
    hashes of groups, by name. group: the facts of the one function, but for its seconds; without them the kernel lists
    no groups. tree: the scheduled loops of the one function, with its arguments; None compiles it as written. laws:
    those that changed the program as a whole, by name.

    >>> A = te.placeholder((4,), name="A")
    >>> strata.driver.BuildPlan(te.function("f", [A], A).module).sources
    {}
    """

    module: ModuleOp
    sources: Mapping[str, Scheduled] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    group: GroupFacts | None = None
    tree: Program | None = None
    laws: tuple[str, ...] = ()


def group_recipe(
    x: object,
    source: ModuleOp,
    plan: BuildPlan,
    name: str | None,
    constants: Mapping[str, object],
    settings: BuildSettings,
    team: Team,
) -> Recipe:
    """Return the recipe for a plan whose module is a te module of groups of the program `x`; `source` is the program's
    module, `name` the function that calls the groups, None for the only public one. Raises InputError for constants
    that are no inputs or are stated by the program, CombinerError for regions that are no combiners; the recipe raises
    the errors of `assembled`."""
    check_combiners(plan.module)
    function = find_function(plan.module, name)
    main = read_tensors(function)
    signature, values = signature_of(main), constant_values(function)
    stated_constants = {main.inputs[n].name: value for n, value in values.items()}
    arrays = merged_constants(renamed_constants(x, signature, constants), stated_constants)
    names = [buffer.name for buffer in main.inputs if buffer.name in arrays]

    @cache
    def program() -> Assembled:
        return assembled(plan.module, plan.sources, settings, team, names, name, plan.hashes, plan.laws, source)

    inner_constants = {name: DenseAttr(dense) for name, dense in main.elements.items()}
    return Recipe(
        signature, stated_constants | inner_constants, lambda: program().linked, lambda: Texts(program().texts)
    )
