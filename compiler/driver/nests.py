"""`nest_recipe`: the recipe of a program without groups; `build_unit`: compile it to data."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cache, partial
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.dialects.calls import is_main
from compiler.dialects.dense import without_elements
from compiler.dialects.functions import find_function
from compiler.driver.evidence import nest_certificate, version_text
from compiler.driver.inputs import Signature, merged_constants, renamed_constants, signature_of
from compiler.driver.main.texts import lazy_text_by_digests
from compiler.driver.plan import BuildPlan
from compiler.driver.recipe import Recipe, Texts
from compiler.driver.units.compile import code_of, compiled
from compiler.driver.units.unit import WRITTEN, BuildSettings, Unit
from compiler.graph.main import constant_slots
from compiler.lowering.low_to_llvm import emit
from compiler.passes.lift_constants import has_constants
from compiler.passes.split_constants import split, split_program
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import TO_LOOPS, run
from compiler.pipeline.source import level_of, verified_module
from compiler.pipeline.to_llvm import passes_from, to_code
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.support.errors import InputError
from compiler.targets.cpu import thread_count
from compiler.targets.cpu.compile import assembly
from compiler.targets.cpu.kernel import LevelText
from compiler.targets.cpu.linked import ConstantBlock, Linked, Preparation
from compiler.targets.groups import GroupFacts
from compiler.types.machines import host

_LEVEL_AFTER = {"te-to-loop": "loop", "reorder-contiguous": "loop", "promote-buffers": "low"}


def build_unit(x: object, threads: int | None = None, policy: str = "contract", name: str | None = None) -> Unit:
    """Compile a program, te programs with all loops as written, to a Unit, which pickles and can be loaded by another
    process. Nests that depend on constant inputs alone are its preparation. The arguments are those of `build`. Raises
    TargetError, InputError, LoweringError, ParseError or VerifyException for a program that `build` refuses.

    >>> A = te.placeholder((4,), name="A")
    >>> unit = strata.driver.build_unit(te.function("f", [A], te.nn.relu(A, name="B")), threads=1)
    >>> unit.call.name, unit.prepare
    ('f', None)
    """
    module, settings = verified_module(x, policy, name), BuildSettings(policy, thread_count(threads), perf_counter())
    if _is_compiled_whole(module, name):
        return _of_module(module, name, settings)
    function = find_function(_loops(module, fold=True), name)
    program = read(function)
    parts = split(function, program.constants, apart=bool(program.constants or program.literals))
    return compiled(parts, _names(program), settings.policy, settings.threads)


def _names(program: Program) -> list[str]:
    return [buffer.name for buffer in program.arguments]


def nest_recipe(
    x: object, plan: BuildPlan, name: str | None, constants: Mapping[str, object] | None, settings: BuildSettings
) -> Recipe:
    """The recipe of a plan's module, unless it is a te module of groups; nests that depend on constants alone run once.
    `name` picks one of several functions. Raises InputError for constants at the low level, and for constants that are
    no inputs, that are written, or that the program states itself."""
    module = plan.module
    states_elements = has_constants(find_function(module, name))
    has_none = constants is None and not states_elements
    if level_of(module) == "low" and not has_none:
        raise InputError("the program is at the low level, where nothing says what depends on constants alone")
    if has_none and _is_compiled_whole(module, name):
        return _whole_recipe(plan, name, settings)
    te: dict[str, LevelText] = {}
    if level_of(module) == "te":
        te = {"te": partial(str, module if has_none else without_elements(module))}
    function = None if plan.tree else find_function(_loops(module, fold=not has_none), name)
    program = plan.tree if function is None else read(function)
    assert program is not None
    signature, stated_constants = signature_of(program), dict(program.values)
    arrays = merged_constants(renamed_constants(x, signature, constants or {}), stated_constants)
    splits_constants = bool(arrays or program.literals)
    parts = (
        split_program(program, arrays, apart=splits_constants)
        if function is None
        else split(function, arrays, apart=splits_constants)
    )

    names, constant_names = _names(program), tuple(arrays)
    unit = cache(partial(compiled, parts, names, settings.policy, settings.threads))

    source = next(iter(plan.sources.values()), WRITTEN)
    positions = [n for n, argument_name in enumerate(names) if argument_name in constant_names]
    loops = replace(program, constants=(), values=())

    given, facts = lazy_text_by_digests(module) if te else str, plan.group  # the plan has the elements of constants

    def evidence() -> str:
        group = nest_certificate(given(), str(ModuleOp([write(loops)])), unit(), source, facts, positions)
        return version_text(given(), [group], settings.policy, settings.threads)

    def texts() -> Texts:
        main = _texts("loop", lambda: ModuleOp([parts.functions()[-1]]), settings, evidence)
        before = _texts("loop", lambda: ModuleOp([parts.functions()[0]]), settings) if parts.prepare else {}
        return Texts({**te, **main}, before)

    def linked() -> Linked:
        return linked_unit(unit(), signature, constant_names, facts, settings.threads)

    return Recipe(signature, stated_constants, linked, texts)


def _whole_recipe(plan: BuildPlan, name: str | None, settings: BuildSettings) -> Recipe:
    """The recipe of a plan's module that is compiled without a split into preparation and call."""
    module = plan.module
    level, whole = level_of(module), cache(partial(_of_module, module, name, settings))

    def compiled_whole() -> Linked:
        return linked_unit(whole(), group=plan.group, threads=settings.threads)

    def whole_evidence() -> str:
        group = nest_certificate("", str(module), whole(), WRITTEN, plan.group)
        return version_text("", [group], settings.policy, settings.threads)

    return Recipe(None, {}, compiled_whole, lambda: Texts(_texts(level, module.clone, settings, whole_evidence)))


def _loops(module: ModuleOp, fold: bool) -> ModuleOp:
    """Return a copy of a te module lowered to loops in the default order; with `fold`, computes of constants are
    evaluated first. A module at another level is returned itself."""
    if level_of(module) != "te":
        return module
    loops = module.clone()
    run(universe.context(), loops, parse_passes(f"{'fold-constants,' if fold else ''}{TO_LOOPS},reorder-contiguous"))
    return loops


def _is_compiled_whole(module: ModuleOp, name: str | None) -> bool:
    """Whether a module is compiled without a split into preparation and call: at the low level, or if it has calls."""
    return level_of(module) == "low" or is_main(find_function(module, name))


def linked_unit(
    unit: Unit,
    signature: Signature | None = None,
    constants: Collection[str] = (),
    group: GroupFacts | None = None,
    threads: int = 1,
) -> Linked:
    """A unit as a program with a block of constants. signature: of the program, None for one that cannot have
    constants. constants: the names of the constant inputs. group: its facts. threads: the default of calls."""
    taken_arguments = [] if signature is None else [signature.arguments[n] for n in unit.takes]
    fixed = {n: buffer for n, buffer in enumerate(taken_arguments) if buffer.name in constants}
    fixed |= enumerate(unit.prepared, len(taken_arguments))
    slots, bytes = constant_slots(fixed.values())
    preparations: tuple[Preparation, ...] = ()
    if unit.prepare is not None and signature is not None:
        inputs = tuple(signature.arguments[n].name for n in unit.prepares)
        preparations = (Preparation(unit.prepare.interface, inputs, tuple(b.name for b in unit.prepared)),)
    return Linked(
        unit.call.interface,
        host(),
        tuple(code.object for code in reversed(unit.codes)),
        unit.call.policy,
        threads,
        any(code.tiles for code in unit.codes),
        tuple((n, slot.offset) for n, slot in zip(fixed, slots, strict=True)),
        ConstantBlock(slots, bytes, preparations, {buffer.name: buffer for buffer in unit.prepared}),
        () if group is None else (group,),
    )


def _of_module(module: ModuleOp, name: str | None, settings: BuildSettings) -> Unit:
    """Compile a copy of a module without a split into preparation and call."""
    low = module.clone()
    to_code(low, level_of(module), settings.policy)
    return Unit(code_of(low, name, settings.policy, settings.threads), ())


def _texts(
    level: str, fresh: Callable[[], ModuleOp], settings: BuildSettings, evidence: Callable[[], str] | None = None
) -> dict[str, LevelText]:
    """The texts of a module at `level` and at each lower level, by level, made on demand; `fresh` copies the module.
    `evidence` makes the text `certificate`, which is missing if None."""
    passes = passes_from(level, settings.policy)

    def after(count: int) -> ModuleOp:
        module = fresh()
        run(universe.context(), module, passes[:count])
        return module

    def text_after(count: int) -> str:
        return str(after(count))

    texts: dict[str, LevelText] = {level: lambda: str(fresh())}
    for count, each_pass in enumerate(passes, 1):
        if each_pass.name in _LEVEL_AFTER:
            texts[_LEVEL_AFTER[each_pass.name]] = partial(text_after, count)

    def llvm() -> str:
        return emit(after(len(passes)), host())

    texts |= {"llvm": llvm, "asm": lambda: assembly(llvm(), host())}
    return texts if evidence is None else texts | {"certificate": evidence}
