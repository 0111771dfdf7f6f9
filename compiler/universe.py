"""Every name strata-opt knows, one line each, loaded when used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from xdsl.context import Context

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

DIALECTS = {
    "te": "compiler.dialects.te:TE",
    "loop": "compiler.dialects.loop:LOOP",
}
"""Our dialects."""

UPSTREAM = {
    "builtin": "xdsl.dialects.builtin:Builtin",
    "func": "xdsl.dialects.func:Func",
    "arith": "compiler.dialects.vector_arith:ARITH",
    "math": "xdsl.dialects.math:Math",
    "scf": "xdsl.dialects.scf:Scf",
    "memref": "xdsl.dialects.memref:MemRef",
    "vector": "xdsl.dialects.vector:Vector",
    "tensor": "xdsl.dialects.tensor:Tensor",
    "linalg": "xdsl.dialects.linalg:Linalg",
    "affine": "xdsl.dialects.affine:Affine",
    "gpu": "xdsl.dialects.gpu:GPU",
    "transform": "xdsl.dialects.transform:Transform",
    "cf": "xdsl.dialects.cf:Cf",
    "llvm": "xdsl.dialects.llvm:LLVM",
}
"""Upstream dialects; arith is the one that has comparisons on vectors."""

PASSES = {
    "te-to-loop": ("compiler.lowering.te_to_loop:TeToLoopPass", "tensor expressions to loop nests"),
    "reorder-contiguous": (
        "compiler.passes.reorder_contiguous:ReorderContiguousPass",
        "the default loop order: contiguous accesses innermost",
    ),
    "decompose-reductions": (
        "compiler.passes.decompose_reductions:DecomposeReductionsPass",
        "make the init of every reduction an explicit nest",
    ),
    "loop-to-low": ("compiler.lowering.loop_to_low:LoopToLowPass", "loop nests to scf, memref and vector"),
    "promote-buffers": (
        "compiler.passes.promote_buffers:PromoteBuffersPass",
        "accumulators in memory to loop-carried values",
    ),
    "plan-buffers": ("compiler.passes.plan_buffers:PlanBuffersPass", "temporaries to few shared slots"),
}
"""Our passes: where each is, and what it does in one line."""


def load(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _loader(path: str) -> Callable[[], Any]:
    return lambda: load(path)


def context() -> Context:
    """A context in which every dialect is registered and loaded when first met."""
    result = Context()
    for name, path in (DIALECTS | UPSTREAM).items():
        result.register_dialect(name, _loader(path))
    result.load_registered_dialect("builtin")
    return result


def find_pass(name: str) -> type[ModulePass] | None:
    """The pass of that name, ours first, then xDSL's; None if there is neither."""
    if name in PASSES:
        found: type[ModulePass] = load(PASSES[name][0])
        return found
    from xdsl.transforms import get_all_passes

    factory = get_all_passes().get(name)
    return None if factory is None else factory()


def __getattr__(name: str) -> Any:
    """`UNIVERSE`, what the stock xdsl-opt discovers; built on demand since it imports all of xDSL's tables."""
    if name != "UNIVERSE":
        raise AttributeError(name)
    from xdsl.universe import Universe

    return Universe(
        all_dialects={name: _loader(path) for name, path in DIALECTS.items()},
        all_passes={name: _loader(path) for name, (path, _) in PASSES.items()},
    )
