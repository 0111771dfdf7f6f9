"""`plain`, `with_constants_apart`: how a program that calls no others is compiled; `load_nest`: its kernel."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler import universe
from compiler.dialects.dense import without_elements
from compiler.dialects.functions import find_function
from compiler.driver.inputs import all_constants, by_name, face_of, fixed_arrays
from compiler.driver.plan import Plan
from compiler.driver.recipe import Nest, Recipe, Texts
from compiler.driver.units.unit import Settings
from compiler.lowering.low_to_llvm import emit
from compiler.passes.split_constants import split
from compiler.pipeline import parse_passes, passes_from, run
from compiler.pipeline.source import LOWER, level_of
from compiler.program.read import read
from compiler.support.errors import InputError
from compiler.targets.arguments import Array
from compiler.targets.cpu.artefact import Artefact, compile_artefact, load_artefact
from compiler.targets.cpu.compile import assembly
from compiler.targets.cpu.facts import Facts
from compiler.targets.cpu.kernel import FixedArguments, Kernel, Text
from compiler.types.machines import host

_LEVEL_AFTER = {"te-to-loop": "loop", "reorder-contiguous": "loop", "promote-buffers": "low"}


def plain(plan: Plan, name: str | None, settings: Settings) -> Recipe:
    """How to compile a verified module without constant arguments."""
    module, te = plan.module, {} if plan.te is None else {"te": plan.te}
    return Recipe(
        None,
        {},
        lambda: Nest(_compiled(module, name, settings), plan.group),
        lambda: Texts({**te, **_texts(module, settings)}),
    )


def with_constants_apart(
    x: object, plan: Plan, name: str | None, constants: Mapping[str, object], settings: Settings
) -> Recipe:
    """How to compile a verified module with constant inputs: computations that depend on these alone run once.

    Raises InputError for the low level, and for constants that are no inputs, are written, or are known.
    """
    module, source = plan.module, plan.module
    level = level_of(module)
    if level == "low":
        raise InputError("the program is at the low level, where nothing says what depends on constants alone")
    if level == "te":
        module = module.clone()
        run(universe.context(), module, parse_passes(f"fold-constants,{LOWER},reorder-contiguous"))
    function = find_function(module, name)
    program = read(function)
    stated = dict(program.values)
    given = all_constants(by_name(x, face_of(program), constants), stated)
    parts = split(function, given)
    *before, main = [ModuleOp([part]) for part in parts.functions]

    def compiled() -> Nest:
        main_code, *once = [_compiled(part, None, settings) for part in (main, *before)]
        takes = () if parts.prepare is None else tuple(b.name for b in parts.prepare.arguments if b.name in given)
        return Nest(
            main_code, plan.group, parts.main.arguments, once[0] if once else None, takes, tuple(parts.prepared)
        )

    def texts() -> Texts:
        te = partial(str, without_elements(source)) if level == "te" else plan.te
        return Texts(
            {**({} if te is None else {"te": te}), **_texts(main, settings)},
            _texts(before[0], settings) if before else {},
        )

    return Recipe(face_of(program), stated, compiled, texts)


def load_nest(
    nest: Nest, constants: Mapping[str, Array], stated: Collection[str], texts: Texts, start: float, cached: bool
) -> Kernel:
    """The kernel of a nest, given the arrays of its constants, some of which the program knows. `start` is when its
    build began, on the clock perf_counter. Raises what `load_artefact` does."""
    machine, preparation, prepared = host(), None, dict[str, Array]()
    if nest.preparation is not None:
        preparation = load_artefact(nest.preparation, machine, texts.preparation)
        made = preparation(*(constants[name] for name in nest.takes))
        prepared = dict(zip(nest.prepared, made if isinstance(made, tuple) else (made,), strict=True))
    fixed = fixed_arrays(nest.arguments, constants, prepared, stated)
    taken, seconds = nest.main.interface, perf_counter() - start
    facts = Facts(
        () if nest.group is None else (replace(nest.group, seconds=0.0 if cached else seconds),),
        arena_bytes=taken.workspace.size(taken.threads or 1),
        constant_bytes=sum(array.nbytes for array in fixed.values()),
        build_seconds=seconds,
        cached=cached,
    )
    return load_artefact(nest.main, machine, texts.main, FixedArguments(fixed, preparation), facts)


def _compiled(module: ModuleOp, name: str | None, settings: Settings) -> Artefact:
    low = _after(module, passes_from(level_of(module), settings.policy))
    return compile_artefact(low, host(), name, settings.policy, settings.threads)


def _texts(module: ModuleOp, settings: Settings) -> dict[str, Text]:
    """The texts of a module and of its lowerings, produced on demand, since most are never read."""
    level = level_of(module)
    passes = passes_from(level, settings.policy)
    texts: dict[str, Text] = {level: partial(str, module)}
    for position, each_pass in enumerate(passes, 1):
        if each_pass.name in _LEVEL_AFTER:
            texts[_LEVEL_AFTER[each_pass.name]] = partial(_text_after, module, passes[:position])

    def llvm() -> str:
        return emit(_after(module, passes), host())

    return {**texts, "llvm": llvm, "asm": lambda: assembly(llvm(), host())}


def _text_after(module: ModuleOp, passes: Sequence[ModulePass]) -> str:
    return str(_after(module, passes))


def _after(module: ModuleOp, passes: Sequence[ModulePass]) -> ModuleOp:
    """A copy of a module after some passes."""
    clone = module.clone()
    run(universe.context(), clone, passes)
    return clone
