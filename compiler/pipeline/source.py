"""The input of a build: the verified module of a caller's program, and its level."""

from __future__ import annotations

from os import PathLike
from reprlib import repr as short

from xdsl.dialects.builtin import ModuleOp

from compiler import universe
from compiler.dialects.calls import alone
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import SLOT_ALIGNMENT, find_function, functions
from compiler.dialects.modules import parsed
from compiler.dialects.numbers import dtype_of
from compiler.dialects.upstream.walk import ops_in
from compiler.frontends.model import Imported
from compiler.lowering.linalg_to_te.detection import has_linalg
from compiler.lowering.stablehlo_to_te.detection import has_stablehlo
from compiler.pipeline.models import import_model
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import run, verifies_each
from compiler.program.tree import Buffer
from compiler.schedule import Schedule
from compiler.support import files, validation
from compiler.support.errors import InputError, TargetError
from compiler.targets.arguments import Argument
from compiler.types.policies import policy_named

TEXT = "\n ({"
"""The characters that distinguish text from a path: every program's text has one of them."""
RAISE = "raise-affine-to-loop"
"""The pass from affine and scf loops to the loop level."""
CONVERT = "convert-linalg-to-te"
"""The pass from linalg on tensors to te."""
CONVERT_STABLEHLO = "convert-stablehlo-to-te"
"""The pass from StableHLO to te."""


def verified_module(x: object, policy: str, name: str | None) -> ModuleOp:
    """Return the verified module to build: a copy of the function `name` (None: the only public one) and its callees.

    Raises TargetError for an unknown policy, and for a policy or name that is no string; InputError if no function
    fits; Refusal for an invalid program; ParseError for a text that cannot be parsed; LoweringError for one without a
    te form. The module of a Schedule was verified before, and steps preserve validity.
    """
    check_words("cpu", policy, name, "")
    policy_named(policy, TargetError)
    module = alone(module_of(x), name)
    if not isinstance(x, Schedule) or verifies_each():
        verify_module(module)
    return module


def check_words(target: object, policy: object, name: object, arch: object) -> None:
    """Raise TargetError for arguments of a build that are not strings; `name` may also be None."""
    for what, value in (("target", target), ("policy", policy), ("arch", arch)):
        validation.text(what, value, TargetError)
    if name is not None:
        validation.text("name", name, TargetError)


def parse(text: str, source: str = "<text>") -> ModuleOp:
    """Parse and verify MLIR text at any of Strata's levels; `source` is its file, or a name such as <text>. Programs of
    linalg and of StableHLO become te.

    Raises xDSL's ParseError and VerifyException, and LoweringError for those without a te form.

    >>> text = "func.func @f(%A: tensor<4xf32>) -> tensor<4xf32> { func.return %A : tensor<4xf32> }"
    >>> strata.dialects.find_function(strata.passes.parse(text)).sym_name.data
    'f'
    """
    return with_te(parsed(universe.context(), text, source))


def with_te(module: ModuleOp) -> ModuleOp:
    """Convert a copy of a module of linalg or StableHLO to te; return any other module as it is. Raises LoweringError
    for an op without a te form."""
    convert = CONVERT_STABLEHLO if has_stablehlo(module) else CONVERT if has_linalg(module) else None
    if convert is None:
        return module
    copy = module.clone()
    run(universe.context(), copy, parse_passes(convert), verify=True)
    return copy


def level_of(module: ModuleOp) -> str:
    """Return the highest level of a module's ops: te (also for functions on tensors), loop or low."""
    if any("tensor<" in str(op.function_type) for op in module.ops if hasattr(op, "function_type")):
        return "te"
    dialects = {op.name.split(".")[0] for op in module.walk()}
    return "te" if "te" in dialects else "loop" if "loop" in dialects else "low"


def module_of(x: object) -> ModuleOp:
    """The module of a caller's program: a te function, a Schedule, a model, IR, its text, or the path of an .mlir file.

    The module is not copied, but one of linalg or StableHLO is converted to te, and one with ops of the affine dialect
    is raised to a module of loops. Raises InputError for other objects and for files that cannot be read; ParseError
    and VerifyException for text; LoweringError for programs without a te form, and for affine ops without a form in
    loops.
    """
    module = _stated_module(x)
    return raised(module) if any(op.name.startswith("affine.") for op in ops_in(module)) else module


def raised(module: ModuleOp) -> ModuleOp:
    """Copy a module, with nests of affine and scf loops raised to the loop level. Raises LoweringError for an op
    without a form in loops, and an access out of bounds."""
    copy = module.clone()
    run(universe.context(), copy, parse_passes(RAISE))
    return copy


def _stated_module(x: object) -> ModuleOp:
    x = import_model(x)
    if isinstance(x, Imported):
        return x.function.module
    if isinstance(x, ModuleOp):
        return with_te(x)
    module = getattr(x, "module", None)
    if isinstance(module, ModuleOp):
        return module
    if isinstance(x, PathLike) or (isinstance(x, str) and "\n" not in x and x.endswith(".mlir")):
        return parse(files.read(x), str(x))
    if isinstance(x, str) and not any(char in x for char in TEXT):
        advice = "give the path of an .mlir file or an ONNX model, or a program's text"
        raise InputError(f"cannot build {short(x)}: {advice}")
    if isinstance(x, str):
        return parse(x)
    raise InputError(
        f"cannot build a {type(x).__name__}: give a te function, a schedule, IR, a path, or what from_torch gives"
    )


def check_is_program(module: ModuleOp) -> None:
    """Raise InputError for a module without a function, such as a script."""
    if not functions(module):
        find_function(module)


def argument(buffer: Buffer) -> Argument:
    """The kernel argument of a buffer: its name, shape and numpy dtype."""
    return Argument(buffer.name, buffer.shape, dtype_of(buffer.element), alignment=SLOT_ALIGNMENT)
