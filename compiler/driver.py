"""`build`: from any level to a callable kernel; `build_artefact`: to one as data; `lower`: to loops, for a schedule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from os import PathLike
from time import perf_counter
from types import MappingProxyType
from typing import Any, Literal, overload

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from compiler import files, stated, universe
from compiler.dialects import loop
from compiler.dialects.dense import DenseAttr, without_elements
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import (
    SLOT_ALIGNMENT,
    alone,
    callees,
    constant_values,
    find_function,
    functions,
    is_main,
    state_constants,
)
from compiler.dialects.parser import Parser
from compiler.errors import InputError, TargetError
from compiler.graph.whole import grouped
from compiler.interpret.combination import check_combiners
from compiler.interpret.numbers import array_of, dtype_of
from compiler.lowering.loop_to_gpu import LoopToGpuPass
from compiler.native.assemble import build_program
from compiler.native.unit import Settings, Source
from compiler.passes.extend_floats import ExtendFloatsPass
from compiler.passes.lift_constants import has_constants
from compiler.passes.split_constants import Parts, split
from compiler.pipeline import parse_passes, passes_from, run
from compiler.policies import policy_named
from compiler.program.main import Main, read_tensors
from compiler.program.read import read
from compiler.program.tree import Buffer, Program
from compiler.program.write import constant_arguments
from compiler.targets.arguments import Array, check_input, copied
from compiler.targets.cpu import Argument, Kernel, load, thread_count
from compiler.targets.cpu.artefact import Artefact, Preparation, compile_artefact
from compiler.targets.cpu.kernel import NOTHING, FixedArguments, Text
from compiler.targets.gpus import kernel_maker
from compiler.targets.machine import host
from compiler.uncollected import uncollected

_LOWER = "check-combiners,lift-constants,te-to-loop"
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
    """Compile a te function, a Schedule, a module, MLIR text, or the path of a file, at whatever level it is.

    `policy` says which liberties floating-point operations have: strict, contract or fast (docs/policies.md). `name`
    picks one of several functions. `threads` is how many threads parallel loops run on where a call does not say: None
    is what OMP_NUM_THREADS says, or the cores that the process may use.

    `constants` are inputs that never change, such as weights: arrays by the names of the inputs. The kernel takes the
    other inputs only. Nests at the top of the program that depend on constants alone, such as those that pack weights,
    run here, once; see the pass split-constants, and `Kernel.fixed`. Constants that the rest still reads are copied, so
    that what happens to the arrays later changes nothing. Other levels than te and loop have no constants.

    For a GPU (see `compiler.targets.gpus`) loops bound to blocks and threads become kernels; what is not bound runs
    on one thread. `arch` is what they are compiled for where no GPU says another; launches that it does not take are
    refused. `threads` and `constants` are the CPU's.

    Raises TargetError or InputError, also for constants that are no inputs, are written, or do not fit; and xDSL's
    ParseError and VerifyException for text that is not a valid program.
    """
    _check_words(target, policy, name, arch)
    start = perf_counter()
    made = None if target == "cpu" else kernel_maker(target)
    if made is not None and (constants is not None or threads is not None):
        raise TargetError(f"threads and constants are the CPU's, not {target}'s")
    with uncollected():
        module = _verified(x, policy, name)
        if made is None and level_of(module) == "te":
            module = grouped(module)
    if made is not None:
        return made(*lower_to_kernels(module, name, policy), policy, arch)
    settings = _Settings(policy, thread_count(threads), start)
    if level_of(module) == "te" and is_main(find_function(module, name)):
        return _program(x, module, name, constants or {}, settings)
    if constants is not None or has_constants(find_function(module, name)):
        return _with_constants(x, module, name, constants or {}, settings)
    return _compiled(module, name, settings)


def lower_to_kernels(
    module: ModuleOp, name: str | None = None, policy: str = "contract"
) -> tuple[ModuleOp, FuncOp, list[Argument]]:
    """A module at the te or loop level, lowered in place to kernels, with its host function and what that takes.

    Raises InputError for the low level, LoweringError for loops that no kernel can have.
    """
    level = level_of(module)
    if level == "low":
        raise InputError("the program is at the low level, where no loop is bound to a GPU's threads")
    if level == "te":
        run(universe.context(), module, parse_passes(_LOWER))
    function = find_function(module, name)
    arguments = [_argument(buffer) for buffer in read(function).arguments]
    LoopToGpuPass(policy).apply(universe.context(), module)
    ExtendFloatsPass().apply(universe.context(), module)
    verify_module(module)
    return module, find_function(module, name), arguments


def unbound(module: ModuleOp) -> ModuleOp:
    """The loops of a module without their bindings to threads, what warps run together among them, and without scopes:
    the same function, for a CPU."""
    found = module.clone()
    for op in found.walk():
        if isinstance(op, loop.ForOp) and op.loop_kind != "serial":
            op.properties["kind"] = StringAttr("serial")
        elif isinstance(op, loop.AllocOp):
            op.properties["scope"] = StringAttr("global")
    return found


def build_artefact(
    x: object, threads: int | None = None, policy: str = "contract", name: str | None = None
) -> Artefact:
    """Compile what `build` takes to data of which another process makes a kernel: see `load_artefact`.

    Where the program says that inputs are constant, what depends on them alone is a preparation of the artefact. Raises
    what `build` does.
    """
    module, settings = _verified(x, policy, name), _Settings(policy, thread_count(threads))
    program = read(find_function(module, name)) if level_of(module) == "loop" else None
    is_split = program is not None and (program.constants or program.literals)
    parts = split(find_function(module, name), program.constants) if program and is_split else None
    if program is None or parts is None or parts.prepare is None:
        return _artefact(module, name, settings)
    before, main = (_artefact(ModuleOp([part]), None, settings) for part in parts.functions)
    arrays = [*(buffer.name for buffer in program.arguments), *parts.prepared]
    inputs = parts.prepare.arguments[: len(parts.prepare.arguments) - len(parts.prepared)]
    takes = tuple(arrays.index(buffer.name) for buffer in inputs)
    passes = tuple(arrays.index(buffer.name) for buffer in parts.main.arguments)
    return replace(main, preparation=Preparation(before, takes, passes))


def _artefact(module: ModuleOp, name: str | None, settings: _Settings) -> Artefact:
    run(universe.context(), module, passes_from(level_of(module), settings.policy), each=False)
    return compile_artefact(module, host(), name, settings.policy, settings.threads)


def with_constants(x: object, module: ModuleOp, names: Sequence[str], name: str | None = None) -> ModuleOp:
    """The loop-level module of a program, with the inputs of these names said to be constant.

    `x` is what the module was made of; its own names of inputs hold. Raises InputError for what is no
    input, or is written.
    """
    module = module.clone()
    function = find_function(module, name)
    program = read(function)
    constants = dict.fromkeys([*program.constants, *_named(x, program, dict.fromkeys(names))])
    split(function, constants)
    state_constants(function, constant_arguments(replace(program, constants=tuple(constants))))
    return module


def _check_words(target: object, policy: object, name: object, arch: object) -> None:
    for what, value in (("target", target), ("policy", policy), ("arch", arch)):
        stated.text(what, value, TargetError)
    if name is not None:
        stated.text("name", name, TargetError)


def _verified(x: object, policy: str, name: str | None) -> ModuleOp:
    """A copy of the module to build: the function that is meant and what it calls. The policy is known."""
    _check_words("cpu", policy, name, "")
    policy_named(policy, TargetError)
    module = alone(_module(x), name)
    verify_module(module)
    return module


@dataclass(frozen=True)
class _Settings:
    """What holds for every function of a build: the floating-point policy, the threads of parallel loops, and when it
    began."""

    policy: str
    threads: int
    start: float = field(default_factory=perf_counter)


def _compiled(
    module: ModuleOp, name: str | None, settings: _Settings, te: Text | None = None, fixed: FixedArguments = NOTHING
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


def build_groups(
    module: ModuleOp,
    sources: Mapping[str, Source],
    threads: int | None = None,
    policy: str = "contract",
    constants: Mapping[str, object] | None = None,
) -> Kernel:
    """Compile a te module whose public function calls others, each under the schedule that `sources` have by its name;
    else as `build`.

    Raises InputError, too, for a name that no group has, ScheduleError for a script that does not apply to its group.
    """
    start = perf_counter()
    whole = _verified(module, policy, None)
    names = [callee.sym_name.data for callee in callees(find_function(whole))]
    for group in sources:
        if group not in names:
            raise InputError(f"the program has no group @{group} (it has {', '.join(names) or 'none'})")
    settings = _Settings(policy, thread_count(threads), start)
    return _program(module, whole, None, constants or {}, settings, sources)


def in_groups(x: object, name: str | None = None) -> ModuleOp:
    """The module that `build` compiles: a te program of several groups cut into these, any other program as it is.

    `name` picks one of several functions; that of a group is none of the program's, and leaves all groups.
    """
    module = _module(x)
    own = name if any(f.sym_name.data == name for f in functions(module)) else None
    module = _verified(module, "contract", own)
    return grouped(module) if level_of(module) == "te" else module


def _program(
    x: object,
    module: ModuleOp,
    name: str | None,
    constants: Mapping[str, object],
    settings: _Settings,
    sources: Mapping[str, Source] = MappingProxyType({}),
) -> Kernel:
    """The kernel of a te program whose function calls others, of which some have schedules."""
    check_combiners(module)
    function = find_function(module, name)
    main = read_tensors(function)
    known = {main.inputs[n].name: value for n, value in constant_values(function).items()}
    arrays = _checked(main, _all_constants(_named(x, main, constants), known))
    return build_program(module, sources, Settings(settings.policy, settings.threads, settings.start), arrays, name)


def _with_constants(
    x: object, module: ModuleOp, name: str | None, constants: Mapping[str, object], settings: _Settings
) -> Kernel:
    """The kernel of a program some of whose inputs are constant, what depends on these alone done."""
    level, source = level_of(module), module.clone()
    if level == "low":
        raise InputError("the program is at the low level, where nothing says what depends on constants alone")
    if level == "te":
        run(universe.context(), module, parse_passes(f"fold-constants,{_LOWER},reorder-contiguous"))
    function = find_function(module, name)
    known = dict(read(function).values)
    given = _all_constants(_named(x, read(function), constants), known)
    parts = split(function, given)
    arrays = _checked(read(function), given)
    *before, main = [ModuleOp([part]) for part in parts.functions]
    preparation = _compiled(before[0], None, settings) if before else None
    prepared = _prepared(parts, preparation, arrays)
    te = partial(str, without_elements(source)) if level == "te" else None
    return _compiled(main, None, settings, te, FixedArguments(_fixed(parts.main, arrays, prepared, known), preparation))


def _all_constants(given: Mapping[str, object], known: Mapping[str, DenseAttr]) -> dict[str, object]:
    """The constants that are given, and those whose elements the program knows. Raises InputError for both at once."""
    for name in known.keys() & given:
        raise InputError(f"'{name}' is a constant of the program: its elements are known")
    return {**given, **{name: array_of(value.data) for name, value in known.items()}}


def _prepared(parts: Parts, preparation: Kernel | None, constants: Mapping[str, Array]) -> dict[str, Array]:
    """What the preparation makes of the constants."""
    if parts.prepare is None or preparation is None:
        return {}
    made = preparation(*(constants[b.name] for b in parts.prepare.arguments if b.name in constants))
    return dict(zip(parts.prepared, made if isinstance(made, tuple) else (made,), strict=True))


def _fixed(
    main: Program, constants: Mapping[str, Array], prepared: Mapping[str, Array], known: Collection[str]
) -> dict[int, Array]:
    """By position the arrays that no call gives: what was prepared, and of the constants that are still read copies,
    or the program's own elements."""
    fixed: dict[int, Array] = {}
    for position, buffer in enumerate(main.arguments):
        if buffer.name in prepared:
            fixed[position] = prepared[buffer.name]
        elif buffer.name in known:
            fixed[position] = constants[buffer.name]
        elif buffer.name in constants:
            fixed[position] = copied(_argument(buffer), constants[buffer.name])
    for array in fixed.values():
        array.flags.writeable = False
    return fixed


def _named(x: object, program: Program | Main, constants: Mapping[str, object]) -> dict[str, object]:
    """Constants by the names that arguments have in the program: a te function's own may be told apart by less."""
    if not isinstance(constants, Mapping):
        raise InputError(f"constants is a {type(constants).__name__}, expected arrays by the names of inputs")
    own = [buffer.name for buffer in program.arguments]
    said = [tensor.name for tensor in getattr(x, "inputs", ())]
    names = dict(zip([*said, *own[len(said) :]], own, strict=True))
    for name in constants:
        if name not in names:
            known = ", ".join(list(names)[: len(own) - program.outputs]) or "none"
            raise InputError(f"@{program.name} has no input '{name}' (it has {known})")
    return {names[name]: array for name, array in constants.items()}


def _checked(program: Program | Main, constants: Mapping[str, object]) -> dict[str, Array]:
    """The constants as arrays of the shapes and dtypes of their arguments."""
    expected = [b for b in program.arguments if b.name in constants]
    return {b.name: check_input(program.name, _argument(b), constants[b.name]) for b in expected}


def _argument(buffer: Buffer) -> Argument:
    return Argument(buffer.name, buffer.shape, dtype_of(buffer.element), alignment=SLOT_ALIGNMENT)


def _text_after(source: ModuleOp, passes: Sequence[ModulePass]) -> str:
    """The text of a module after some passes; made anew when it is asked for, since most never is."""
    module = source.clone()
    run(universe.context(), module, passes, each=False)
    return str(module)


def lower(x: object) -> ModuleOp:
    """The loop-level module of a te function, in the order written: what a Schedule begins with.

    `x` is what `build` takes, at the te or loop level. Raises InputError for the low level.
    """
    module = _module(x).clone()
    verify_module(module)
    if level_of(module) == "low":
        raise InputError("the program is at the low level, below loops and blocks")
    run(universe.context(), module, parse_passes(_LOWER))
    return module


def parse(text: str, source: str = "<text>") -> ModuleOp:
    """The verified module of MLIR text at any of Strata's levels."""
    module = Parser(universe.context(), text, source).parse_module()
    verify_module(module)
    return module


def level_of(module: ModuleOp) -> str:
    """te, loop or low: the highest level of which a module has an op or a type."""
    dialects = {op.name.split(".")[0] for op in module.walk()}
    tensors = any("tensor<" in str(op.function_type) for op in module.ops if hasattr(op, "function_type"))
    return "te" if "te" in dialects or tensors else "loop" if "loop" in dialects else "low"


def _module(x: object) -> ModuleOp:
    if isinstance(x, ModuleOp):
        return x
    module = getattr(x, "module", None)
    if isinstance(module, ModuleOp):
        return module
    if isinstance(x, PathLike) or (isinstance(x, str) and "\n" not in x and x.endswith(".mlir")):
        return parse(files.read(x), str(x))
    if isinstance(x, str):
        return parse(x)
    raise InputError(f"cannot build a {type(x).__name__}: give a te function, a schedule, a module, text or a path")
