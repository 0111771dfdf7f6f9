"""Every name strata-opt knows, one line each, loaded when used."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from xdsl.context import Context

from compiler.support import plugins
from compiler.support.errors import InputError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, TypeAttribute
    from xdsl.passes import ModulePass
    from xdsl.universe import Universe

DIALECTS = {
    "te": "compiler.dialects.te:TE",
    "loop": "compiler.dialects.loop:LOOP",
    "sched": "compiler.schedule.dialect:SCHED",
    "intr": "compiler.dialects.intr:INTR",
    "unit": "compiler.dialects.tile_intrinsics:UNIT",
}
"""Our dialects."""

UPSTREAM = {
    "arith": "compiler.dialects.upstream.arith:ARITH",
    "math": "compiler.dialects.upstream.math:MATH",
    "vector": "compiler.dialects.upstream.vector:VECTOR",
    "memref": "compiler.dialects.upstream.memref:MEMREF",
    "gpu": "compiler.dialects.upstream.gpu:GPU",
    "nvgpu": "compiler.dialects.upstream.nvgpu:NVGPU",
}
"""Upstream dialects that we extend: arith on vectors, erfc, gathers, prefetches, shuffles, asynchronous copies,
products of small matrices. xDSL has the others as they are."""

PASSES = {
    "te-canonicalize": "compiler.passes.te_canonicalize:TeCanonicalizePass",
    "te-alternatives": "compiler.passes.te_alternatives:TeAlternativesPass",
    "te-to-loop": "compiler.lowering.te_to_loop:TeToLoopPass",
    "te-group": "compiler.passes.te_group:TeGroupPass",
    "fold-constants": "compiler.passes.fold_constants:FoldConstantsPass",
    "lift-constants": "compiler.passes.lift_constants:LiftConstantsPass",
    "check-combiners": "compiler.passes.check_combiners:CheckCombinersPass",
    "extend-floats": "compiler.passes.extend_floats:ExtendFloatsPass",
    "reorder-contiguous": "compiler.passes.reorder_contiguous:ReorderContiguousPass",
    "split-constants": "compiler.passes.split_constants:SplitConstantsPass",
    "decompose-reductions": "compiler.passes.decompose_reductions:DecomposeReductionsPass",
    "verify-schedule": "compiler.passes.verify_schedule:VerifySchedulePass",
    "apply-schedule": "compiler.passes.schedule.script:ApplySchedulePass",
    "loop-to-gpu": "compiler.lowering.loop_to_gpu:LoopToGpuPass",
    "loop-to-low": "compiler.lowering.loop_to_low:LoopToLowPass",
    "check-bounds": "compiler.passes.check_bounds:CheckBoundsPass",
    "transpose-scatters": "compiler.passes.transpose_scatters:TransposeScattersPass",
    "promote-buffers": "compiler.passes.promote_buffers:PromoteBuffersPass",
    "expand-math": "compiler.passes.expand_math:ExpandMathPass",
    "plan-buffers": "compiler.passes.plan_buffers:PlanBuffersPass",
}
"""Our passes that apply no schedule primitive, and where each is."""

Loaded: TypeAlias = Any  # a dialect, a pass or a function: whatever stands at a path

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


def load(path: str) -> Loaded:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _loader(path: str) -> Callable[[], Loaded]:
    return lambda: load(path)


class _OpenContext(Context):
    """A context that asks other packages' universes for a dialect that neither we nor xDSL have."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """The op of that name, its dialect registered first."""
        self._meet(name)
        op = super().get_optional_op(name, dialect_stack=dialect_stack)
        return _op_of_plugin(name) if op is None and name.startswith("sched.") else op

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """The type of that name, its dialect registered first."""
        self._meet(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """The attribute of that name, its dialect registered first."""
        self._meet(name)
        return super().get_optional_attr(name)

    def _meet(self, name: str) -> None:
        dialect, dot, _ = name.partition(".")
        if dot and dialect not in self.registered_dialect_names:
            part = plugins.parts("dialect").get(dialect)
            factory = _universes().all_dialects.get(dialect) if part is None else lambda: part.value
            if factory is not None:
                self.register_dialect(dialect, factory)


def _op_of_plugin(name: str) -> type[Operation] | None:
    """The op of a schedule primitive that a plugin adds; None if there is none."""
    if not plugins.parts("primitive"):
        return None
    primitive = load("compiler.schedule.primitives:of_plugins")().get(name.removeprefix("sched."))
    return None if primitive is None else primitive.op


def context() -> Context:
    """A context in which every dialect is registered and loaded when first met."""
    from xdsl.dialects import get_all_dialects
    from xdsl.utils.mlir_lexer import MLIRLexer

    # xDSL's own pattern takes exponential time over a string that is never closed.
    MLIRLexer._unescaped_characters_regex = _STRING
    opened = _OpenContext()
    ours = {name: _loader(path) for name, path in (DIALECTS | UPSTREAM).items()}
    for name, factory in (get_all_dialects() | ours).items():
        opened.register_dialect(name, factory)
    opened.load_registered_dialect("builtin")
    return opened


def schedule_passes() -> dict[str, type[ModulePass]]:
    """The passes that apply schedule primitives, by name; loaded when first asked for, since they load the analysis."""
    passes: dict[str, type[ModulePass]] = load("compiler.passes.schedule:PASSES")
    return passes


def our_passes() -> dict[str, str]:
    """Every pass of ours, with what it does in one line."""
    kinds = {name: load(path) for name, path in PASSES.items()} | schedule_passes()
    return {name: first_sentence(kind.__doc__ or "") for name, kind in kinds.items()}


def first_sentence(text: str) -> str:
    """The first sentence of a docstring on one line."""
    return re.split(r"[.:](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]


def is_ours(asked: ModulePass) -> bool:
    """Whether a pass is ours, and not xDSL's or a plugin's."""
    return asked.name in PASSES or type(asked).__module__.startswith("compiler.")


def find_pass(name: str) -> type[ModulePass] | None:
    """The pass of that name: ours, or xDSL's, or another package's; None if there is none."""
    if name in PASSES:
        kind: type[ModulePass] = load(PASSES[name])
        return kind
    from xdsl.transforms import get_all_passes

    factory = get_all_passes().get(name)
    if factory is None and name in schedule_passes():
        return schedule_passes()[name]
    part = plugins.parts("pass").get(name) if factory is None else None
    if part is not None:
        return part.value  # type: ignore[no-any-return]
    if factory is None and name in _passes_of_primitives():
        return _passes_of_primitives()[name]
    factory = factory or _universes().all_passes.get(name)
    return None if factory is None else factory()


def _passes_of_primitives() -> dict[str, type[ModulePass]]:
    """The passes of the schedule primitives that plugins add, by name."""
    if not plugins.parts("primitive"):
        return {}
    passes: dict[str, type[ModulePass]] = load("compiler.passes.schedule.declared:plugin_passes")()
    return passes


def own_passes() -> list[str]:
    """The names of our passes, of xDSL's, and of pipelines."""
    from xdsl.transforms import get_all_passes

    return [*load("compiler.pipeline:PIPELINES"), *PASSES, *schedule_passes(), *get_all_passes()]


def own_dialects() -> list[str]:
    """The names of our dialects and of xDSL's."""
    from xdsl.dialects import get_all_dialects

    return [*DIALECTS, *get_all_dialects()]


def pass_names() -> list[str]:
    """The names of all passes and pipelines, but of those that packages of xDSL add."""
    return [*own_passes(), *plugins.parts("pass"), *_passes_of_primitives()]


def whose_pass(name: str) -> str:
    """A pass that is not ours, in words: xDSL's, or with the entry point of the package of xDSL that declares it."""
    from importlib.metadata import entry_points

    from xdsl.transforms import get_all_passes

    if name not in get_all_passes():
        for plugin in entry_points(group="xdsl.universe"):
            if name in plugin.load().all_passes:
                return f"the pass '{name}' of the plugin '{plugin.name}' ({plugin.value})"
    return f"xDSL's pass '{name}'"


@cache
def _universes() -> Universe:
    """What installed packages declare; the scan of entry points is slow, so only for unknown names."""
    from xdsl.universe import Universe

    try:
        return Universe.get_multiverse()
    except ValueError as error:
        raise InputError(f"the installed xDSL plugins cannot be used together: {error}") from error


def __getattr__(name: str) -> Universe:
    """`UNIVERSE`, what the stock xdsl-opt discovers; built on demand, since xDSL's tables take a while."""
    if name != "UNIVERSE":
        raise AttributeError(name)
    from xdsl.universe import Universe

    return Universe(
        all_dialects={name: _loader(path) for name, path in DIALECTS.items()},
        all_passes={name: _loader(path) for name, path in PASSES.items()}
        | {name: partial(schedule_passes().__getitem__, name) for name in schedule_passes()},
    )
