"""`build`: from any level to a callable kernel, as written; `build_groups`, `build_scheduled`: with schedules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter
from types import MappingProxyType
from typing import Any, Literal, overload

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.dialects.dense import without_elements
from compiler.dialects.functions import (
    callees,
    constant_values,
    find_function,
    functions,
    is_main,
)
from compiler.driver.constants import all_constants, by_name, checked_arrays, fixed_arrays, run_once
from compiler.driver.loops import lower_to_kernels
from compiler.driver.source import LOWER, check_words, level_of, module_of, verified
from compiler.errors import InputError, TargetError
from compiler.graph.whole import grouped, whole
from compiler.interpret.combination import check_combiners
from compiler.native.assemble import build_program
from compiler.native.unit import Settings, Source
from compiler.passes.lift_constants import has_constants
from compiler.passes.split_constants import split
from compiler.pipeline import parse_passes, passes_from, run
from compiler.program.main import read_tensors
from compiler.program.read import read
from compiler.targets.cpu import Kernel, load, thread_count
from compiler.targets.cpu.facts import Group
from compiler.targets.cpu.kernel import NOTHING, FixedArguments, Text
from compiler.targets.gpus import kernel_maker
from compiler.targets.machine import host
from compiler.uncollected import uncollected

_LEVEL_AFTER = {"te-to-loop": "loop", "reorder-contiguous": "loop", "promote-buffers": "low"}


@overload
def build(
    x: object,
    target: Literal["cpu"] = ...,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
) -> Kernel: ...


@overload
def build(
    x: object,
    target: str,
    threads: int | None = ...,
    policy: str = ...,
    name: str | None = ...,
    constants: Mapping[str, object] | None = ...,
    arch: str = ...,
) -> Any: ...  # what a target makes


def build(
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
    start = perf_counter()
    made = None if target == "cpu" else kernel_maker(target)
    if made is not None and (constants is not None or threads is not None):
        raise TargetError(f"threads and constants are the CPU's, not {target}'s")
    hashes: Mapping[str, str] = {}
    with uncollected():
        module = verified(x, policy, name)
        if made is None and level_of(module) == "te":
            cut = whole(module)
            module, hashes = cut.module, cut.hashes
    if made is not None:
        return made(*lower_to_kernels(module, name, policy), policy, arch)
    settings = Settings(policy, thread_count(threads), start)
    if level_of(module) == "te" and is_main(find_function(module, name)):
        return _program(x, module, name, constants or {}, settings, hashes=hashes)
    if constants is not None or has_constants(find_function(module, name)):
        return _with_constants(x, module, name, constants or {}, settings)
    return _compiled(module, name, settings)


def build_groups(
    module: ModuleOp,
    sources: Mapping[str, Source],
    threads: int | None = None,
    policy: str = "contract",
    constants: Mapping[str, object] | None = None,
    hashes: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """Compile a te module whose public function calls others, each under the schedule that `sources` have by its name;
    else as `build`. `hashes` are the canonical hashes of these functions by name, where they are known.

    Raises InputError, too, for a name that no group has, ScheduleError for a script that does not apply to its group.
    """
    start = perf_counter()
    own = verified(module, policy, None)
    names = [callee.sym_name.data for callee in callees(find_function(own))]
    for group in sources:
        if group not in names:
            raise InputError(f"the program has no group @{group} (it has {', '.join(names) or 'none'})")
    settings = Settings(policy, thread_count(threads), start)
    return _program(module, own, None, constants or {}, settings, sources, hashes)


def build_scheduled(
    x: object,
    loops: ModuleOp | None,
    group: Group,
    threads: int | None = None,
    policy: str = "contract",
    constants: Mapping[str, object] | None = None,
) -> Kernel:
    """Compile a te program of one group by the scheduled loops of its function, which have its arguments; without them
    as it is written.

    `group` says where the schedule is from; its seconds are set here. Raises what `build` does.
    """
    start = perf_counter()
    if loops is None:
        return _as_group(build(x, threads=threads, policy=policy, constants=constants), group)
    module, te = verified(loops, policy, None), partial(str, without_elements(module_of(x)))
    settings = Settings(policy, thread_count(threads), start)
    if constants is not None or has_constants(find_function(module)):
        return _as_group(_with_constants(x, module, None, constants or {}, settings, te), group)
    return _as_group(_compiled(module, None, settings, te), group)


def _as_group(kernel: Kernel, group: Group) -> Kernel:
    """A kernel that says that it is one group."""
    own = replace(group, seconds=kernel.facts.build_seconds)
    kernel.facts = replace(kernel.facts, groups=(own,))
    return kernel


def in_groups(x: object, name: str | None = None) -> ModuleOp:
    """The module that `build` compiles: a te program of several groups cut into these, any other program as it is.

    `name` picks one of several functions; that of a group is none of the program's, and leaves all groups.
    """
    module = module_of(x)
    own = name if any(f.sym_name.data == name for f in functions(module)) else None
    module = verified(module, "contract", own)
    return grouped(module) if level_of(module) == "te" else module


def _program(
    x: object,
    module: ModuleOp,
    name: str | None,
    constants: Mapping[str, object],
    settings: Settings,
    sources: Mapping[str, Source] = MappingProxyType({}),
    hashes: Mapping[str, str] = MappingProxyType({}),
) -> Kernel:
    """The kernel of a te program whose function calls others, of which some have schedules."""
    check_combiners(module)
    function = find_function(module, name)
    main = read_tensors(function)
    known = {main.inputs[n].name: value for n, value in constant_values(function).items()}
    arrays = checked_arrays(main, all_constants(by_name(x, main, constants), known))
    return build_program(module, sources, settings, arrays, name, hashes)


def _with_constants(
    x: object,
    module: ModuleOp,
    name: str | None,
    constants: Mapping[str, object],
    settings: Settings,
    te: Text | None = None,
) -> Kernel:
    """The kernel of a program some of whose inputs are constant, what depends on these alone done; `te` is what its
    loops were made of, if of something else."""
    level, source = level_of(module), module.clone()
    if level == "low":
        raise InputError("the program is at the low level, where nothing says what depends on constants alone")
    if level == "te":
        run(universe.context(), module, parse_passes(f"fold-constants,{LOWER},reorder-contiguous"))
    function = find_function(module, name)
    known = dict(read(function).values)
    given = all_constants(by_name(x, read(function), constants), known)
    parts = split(function, given)
    arrays = checked_arrays(read(function), given)
    *before, main = [ModuleOp([part]) for part in parts.functions]
    preparation = _compiled(before[0], None, settings) if before else None
    prepared = run_once(parts, preparation, arrays)
    te = partial(str, without_elements(source)) if level == "te" else te
    return _compiled(
        main, None, settings, te, FixedArguments(fixed_arrays(parts.main, arrays, prepared, known), preparation)
    )


def _compiled(
    module: ModuleOp, name: str | None, settings: Settings, te: Text | None = None, fixed: FixedArguments = NOTHING
) -> Kernel:
    """The kernel of a verified module, which is lowered in place; `te` is what it was made of, if of something else."""
    level = level_of(module)
    passes = passes_from(level, settings.policy)
    source = module.clone()
    texts: dict[str, Text] = {} if te is None else {"te": te}
    texts[level] = lambda: str(source)
    for position, item in enumerate(passes, 1):
        if item.name in _LEVEL_AFTER:
            texts[_LEVEL_AFTER[item.name]] = partial(_text_after, source, passes[:position])
    run(universe.context(), module, passes, each=False)
    return load(module, host(), name, texts, settings.policy, settings.threads, fixed=fixed, start=settings.start)


def _text_after(source: ModuleOp, passes: Sequence[ModulePass]) -> str:
    """The text of a module after some passes; made anew when it is asked for, since most never is."""
    module = source.clone()
    run(universe.context(), module, passes, each=False)
    return str(module)
