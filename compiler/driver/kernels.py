"""`build_as_written`: from any level to a callable kernel, as written; `build_groups`: with schedules of groups;
`build_planned`: by a plan that is made only where the cache does not have the program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, Literal, overload

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import constants_in
from compiler.dialects.functions import callees, find_function, functions, is_main
from compiler.driver.memory import Request, remembered
from compiler.driver.nests import of_nests
from compiler.driver.plan import BuildPlan, of_groups
from compiler.driver.recipe import Recipe
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.graph.whole import grouped, whole
from compiler.pipeline.loops import lower_for
from compiler.pipeline.source import check_words, level_of, module_of, verified
from compiler.support.errors import InputError
from compiler.support.gc import paused
from compiler.targets.arena import arena, arena_ahead
from compiler.targets.cpu import Kernel, thread_count
from compiler.targets.registry import target_named

EACH = 0.04
"""Seconds that a program takes to build for each of its ops, roughly."""


@overload
def build_as_written(
    x: object,
    target: Literal["cpu"] = ...,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
) -> Kernel: ...


@overload
def build_as_written(
    x: object,
    target: str,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
    arch: str = ...,
) -> Any: ...  # what a target makes


def build_as_written(
    x: object,
    target: str = "cpu",
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    arch: str = "sm_80",
) -> Any:
    """Compile what `compiler.build` takes, te programs as they are written; see there for arguments and errors."""
    check_words(target, policy, name, arch)
    chosen = target_named(target)
    if chosen.in_units:
        return build_planned(x, written, (), threads, policy, name, constants)
    chosen.check(threads, constants)
    with paused():
        module = verified(x, policy, name)
    return chosen.made(*lower_for(chosen, module, name, policy), policy, arch)


def build_groups(
    module: ModuleOp,
    sources: Mapping[str, Scheduled],
    threads: int | None = None,
    policy: str = "contract",
    constants: Mapping[str, object] | None = None,
    hashes: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """Compile a te module whose public function calls others, each under the schedule that `sources` have by its name;
    else as `build`. `hashes` are the canonical hashes of these functions by name, where they are known.

    Raises InputError, too, for a name that no group has, ScheduleError for a script that does not apply to its group.
    """

    def plan(grouped_module: ModuleOp) -> BuildPlan:
        names = [callee.sym_name.data for callee in callees(find_function(grouped_module))]
        for group in sources:
            if group not in names:
                raise InputError(f"the program has no group @{group} (it has {', '.join(names) or 'none'})")
        return BuildPlan(grouped_module, sources, hashes)

    words = ("groups", sorted(sources.items()), sorted(hashes.items()))
    return build_planned(module, plan, words, threads, policy, constants=constants)


def build_planned(
    x: object,
    plan: Callable[[ModuleOp], BuildPlan],
    words: Sequence[object],
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    profiled: bool = False,
) -> Kernel:
    """Compile what a plan makes of the verified module of `x`, else as `build`.

    A kernel that was built in the same way, in whatever process, is loaded from the cache: `plan` is called when a text
    of it is asked for, or never. So the plan must depend on nothing but its module, which it may keep but not change,
    and on `words`, such as the mode in which schedules are chosen and a digest of the records that they are from. Words
    are texts, numbers, and lists, tuples and dataclasses of these. The cache adds the rest: the module's text, the
    function, the names of constants, the settings, the machine, LLVM, the package's sources. Origins and verdicts of
    schedules are kept with the kernel; `Facts.cached` says that it is a kept one. `profiled` is as in `BuildSettings`.
    """
    return build_by_team(x, lambda module, team: plan(module), words, threads, policy, name, constants, profiled)


def build_by_team(
    x: object,
    plan: Callable[[ModuleOp, Team], BuildPlan],
    words: Sequence[object],
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    profiled: bool = False,
) -> Kernel:
    """`build_planned` by a plan that a team of processes helps to make, the one that compiles it."""
    start = perf_counter()
    with paused():
        module = verified(x, policy, name)
    settings = BuildSettings(policy, thread_count(threads), start, profiled=profiled)
    request = Request(x, module, name, constants, settings, words)

    with Team() as team:

        def recipe() -> Recipe:
            team.expect(EACH * sum(1 for function in functions(module) for _ in function.body.ops))
            allocate = arena if team.llvm is None else arena_ahead(_constant_bytes(request))
            with paused():
                made = plan(module, team)
            return replace(_recipe(request, made, team), allocate=allocate)

        return remembered(request, recipe)


def written(module: ModuleOp) -> BuildPlan:
    """A program as it is written, a te program in groups."""
    if level_of(module) != "te":
        return BuildPlan(module)
    cut = whole(module)
    return BuildPlan(cut.module, hashes=cut.hashes)


def _recipe(request: Request, plan: BuildPlan, team: Team) -> Recipe:
    name, constants = request.name, request.constants
    if level_of(plan.module) == "te" and is_main(find_function(plan.module, name)):
        return of_groups(request.x, plan, name, constants or {}, request.settings, team)
    return of_nests(request.x, plan, name, constants, request.settings)


def _constant_bytes(request: Request) -> int:
    """The bytes of all constants, of those that the caller gives and of those in the module."""
    given = (getattr(array, "nbytes", 0) for array in (request.constants or {}).values())
    return sum(given) + sum(constant.data.nbytes for constant in constants_in(request.module))


def in_groups(x: object, name: str | None = None) -> ModuleOp:
    """The module that `build` compiles: a te program of several groups cut into these, any other program as it is.

    `name` picks one of several functions; that of a group is none of the program's, and leaves all groups.
    """
    module = module_of(x)
    function_name = name if any(f.sym_name.data == name for f in functions(module)) else None
    module = verified(module, "contract", function_name)
    return grouped(module) if level_of(module) == "te" else module
