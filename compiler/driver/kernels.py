"""`build_as_written`: compile a program at any level as written; `build_groups`: with schedules of its groups;
`build_planned`: by a plan, which is made only on a miss of the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter
from types import MappingProxyType
from typing import Any, Literal, overload

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.calls import callees, is_main
from compiler.dialects.dense import constants_in
from compiler.dialects.functions import find_function, functions
from compiler.driver.build_origin import labels_of
from compiler.driver.caching import BuildRequest, CompiledProgram, cached_program
from compiler.driver.nests import nest_recipe
from compiler.driver.plan import BuildPlan, group_recipe
from compiler.driver.recipe import Recipe
from compiler.driver.units.pool import Team
from compiler.driver.units.unit import BuildSettings, Scheduled
from compiler.graph.grouped_module import group_program, grouped_module
from compiler.pipeline.loops import lower_for
from compiler.pipeline.source import check_words, level_of, module_of, verified_module
from compiler.support.errors import InputError
from compiler.support.gc import paused
from compiler.targets.arena import arena, prefault_arena
from compiler.targets.cpu import Kernel, thread_count
from compiler.targets.registry import target_named

EACH = 0.04
"""The approximate seconds of a build for each op of the program."""


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
) -> Any: ...  # a kernel of the target


def build_as_written(
    x: object,
    target: str = "cpu",
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    arch: str = "sm_80",
) -> Any:
    """Compile a program at any level to a kernel, te programs with all loops as written. The arguments are those of
    `compiler.build`, without a choice of schedules. Raises TargetError, InputError, LoweringError, ParseError or
    VerifyException for a program or constants that `compiler.build` refuses."""
    check_words(target, policy, name, arch)
    chosen = target_named(target)
    if chosen.in_units:
        return compile_as_written(x, threads, policy, name, constants).load()
    chosen.check(threads, constants)
    with paused():
        module = verified_module(x, policy, name)
    return chosen.make_kernel(*lower_for(chosen, module, name, policy), policy, arch)


def compile_as_written(
    x: object, threads: int | None, policy: str, name: str | None, constants: Mapping[str, object] | None
) -> CompiledProgram:
    """Compile a program for the CPU, te programs with all loops as written, to code that is not loaded. The arguments
    are those of `build`. Raises TargetError, InputError, LoweringError, ParseError or VerifyException for a program or
    constants that `build` refuses."""
    program = compile_by_team(x, lambda module, team: plan_as_written(module), (), threads, policy, name, constants)
    return replace(program, labels=lambda: labels_of(plan_as_written(module_of(x)).module, name))


def build_groups(
    module: ModuleOp,
    sources: Mapping[str, Scheduled],
    threads: int | None = None,
    policy: str = "contract",
    constants: Mapping[str, object] | None = None,
    hashes: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """Compile a te module whose public function calls groups, each under its schedule.

    sources: the schedules by the names of the groups; missing ones are as written. hashes: the known canonical hashes
    of the groups, by name. The other arguments are those of `build`. Raises InputError for an unknown name of a group
    and for constants that are no inputs, TargetError for those that do not fit, ScheduleError for a script that does
    not apply to its group, LoweringError or TargetError for code that cannot be compiled.
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
    """Compile the BuildPlan that `plan` makes of the verified module of `x`; other arguments are those of `build`.

    A kernel that any process has built with the same key is loaded from the cache; `plan` is then called only if a text
    of the kernel is requested. So the plan must depend on nothing but its module, which it may store but not change,
    and on `words`, such as the mode of choosing schedules and a digest of their records. Words are texts, numbers, and
    lists, tuples and dataclasses of these. The cache adds to the key: the module's text, the function, the names of
    constants, the settings, the machine, LLVM, the package's sources. Origins and verdicts of schedules are cached with
    the kernel; `Facts.cached` is true for a cached kernel. `profiled` counts the ticks of each call of a group.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("f", [A], te.nn.relu(A, name="B"))
    >>> strata.driver.build_planned(f, strata.driver.BuildPlan, words=(), threads=1)
    <Kernel f(A: float32[4], B: float32[4]), 1 output>
    """

    def by_team(module: ModuleOp, team: Team) -> BuildPlan:
        return plan(module)

    return compile_by_team(x, by_team, words, threads, policy, name, constants, profiled).load()


def compile_by_team(
    x: object,
    plan: Callable[[ModuleOp, Team], BuildPlan],
    words: Sequence[object],
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    profiled: bool = False,
) -> CompiledProgram:
    """Compile the BuildPlan that `plan` makes of the verified module of `x` and of the team of processes that compiles
    the program, and do not load it; the other arguments are those of `build_planned`."""
    start = perf_counter()
    with paused():
        module = verified_module(x, policy, name)
    settings = BuildSettings(policy, thread_count(threads), start, profiled=profiled)
    request = BuildRequest(x, module, name, constants, settings, words)

    with Team() as team:

        def recipe() -> Recipe:
            team.expect(EACH * sum(1 for function in functions(module) for _ in function.body.ops))
            allocate = arena if team.llvm is None else prefault_arena(_constant_bytes(request))
            with paused():
                build_plan = plan(module, team)
            return replace(_recipe(request, build_plan, team), allocate=allocate)

        return cached_program(request, recipe)


def plan_as_written(module: ModuleOp) -> BuildPlan:
    """The plan of a program with all loops as written; a te program is cut into groups."""
    if level_of(module) != "te":
        return BuildPlan(module)
    cut = group_program(module)
    return BuildPlan(cut.module, hashes=cut.hashes)


def _recipe(request: BuildRequest, plan: BuildPlan, team: Team) -> Recipe:
    name, constants = request.name, request.constants
    if level_of(plan.module) == "te" and is_main(find_function(plan.module, name)):
        return group_recipe(request.x, request.module, plan, name, constants or {}, request.settings, team)
    return nest_recipe(request.x, plan, name, constants, request.settings)


def _constant_bytes(request: BuildRequest) -> int:
    """The bytes of all constants: the caller's arrays and those in the module."""
    sizes = (getattr(array, "nbytes", 0) for array in (request.constants or {}).values())
    return sum(sizes) + sum(constant.data.nbytes for constant in constants_in(request.module))


def module_in_groups(x: object, name: str | None = None) -> ModuleOp:
    """The module that `build` compiles: a te program cut into its groups if there are several, else unchanged. `name`
    picks one of several functions of the program. A name that is no function, such as a group's, is ignored."""
    module = module_of(x)
    function_name = name if any(f.sym_name.data == name for f in functions(module)) else None
    module = verified_module(module, "contract", function_name)
    return grouped_module(module) if level_of(module) == "te" else module
