"""`build`: from any level to a callable kernel; `lower`: to loops, for a schedule."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from compiler import universe
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.errors import InputError, TargetError
from compiler.pipeline import PIPELINES, parse_passes, run
from compiler.targets.cpu import Kernel, load
from compiler.targets.machine import host

_LEVEL_AFTER = {"te-to-loop": "loop", "reorder-contiguous": "loop", "promote-buffers": "low"}
POLICIES = ("strict", "contract", "fast")


def build(
    x: Any,
    target: str = "cpu",
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
) -> Kernel:
    """Compile a te function, a Schedule, a module, MLIR text, or the path of a file, at whatever level it is.

    `policy` says which liberties floating-point operations have: strict, contract or fast. `name` picks one of
    several functions. `threads` is the count for parallel loops, which run serially for now: None or 1. Raises
    TargetError or InputError, and xDSL's ParseError and VerifyException for text that is not a valid program.
    """
    if target != "cpu":
        raise TargetError(f"unknown target '{target}' (there is cpu)")
    if threads not in (None, 1):
        raise TargetError(f"threads={threads!r}: parallel loops run on one thread for now")
    if policy not in POLICIES:
        raise TargetError(f"unknown policy '{policy}' (there are {', '.join(POLICIES)})")
    ctx = universe.context()
    module = _only(_module(x).clone(), name)
    verify_module(module)
    level = level_of(module)
    texts = {level: str(module)}
    passes = {"te": PIPELINES["cpu"], "loop": PIPELINES["loop-to-cpu"], "low": "extend-floats,plan-buffers"}[level]
    passes = passes.replace("loop-to-low", f"loop-to-low{{policy={policy}}}")

    def keep(item: Any, module: ModuleOp) -> None:
        if item.name in _LEVEL_AFTER:
            texts[_LEVEL_AFTER[item.name]] = str(module)

    run(ctx, module, parse_passes(passes), keep)
    return load(module, host(), name, texts)


def lower(x: Any) -> ModuleOp:
    """The loop-level module of a te function, in the order written: what a Schedule begins with.

    `x` is what `build` takes, at the te or loop level. Raises InputError for the low level.
    """
    module = _module(x).clone()
    verify_module(module)
    if level_of(module) == "low":
        raise InputError("the program is at the low level, below loops and blocks")
    run(universe.context(), module, parse_passes("check-combiners,te-to-loop"))
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


def _only(module: ModuleOp, name: str | None) -> ModuleOp:
    find_function(module, name)
    return module


def _module(x: Any) -> ModuleOp:
    if isinstance(x, ModuleOp):
        return x
    module = getattr(x, "module", None)
    if isinstance(module, ModuleOp):
        return module
    if isinstance(x, PathLike) or (isinstance(x, str) and "\n" not in x and x.endswith(".mlir")):
        return parse(_read(Path(x)), str(x))
    if isinstance(x, str):
        return parse(x)
    raise InputError(f"cannot build a {type(x).__name__}: give a te function, a schedule, a module, text or a path")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text") from error
