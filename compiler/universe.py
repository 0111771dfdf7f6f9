"""Tables of dialects and passes: ours, xDSL's and those of plugins; each entry is imported at first use."""

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
    "unit": "compiler.dialects.tile_intrinsics:UNIT",
    "grid": "compiler.dialects.grid:GRID",
}
"""Map each of our dialects to its path, `module:name`."""

UPSTREAM = {
    "arith": "compiler.dialects.upstream.arith:ARITH",
    "math": "compiler.dialects.upstream.math:MATH",
    "scf": "compiler.dialects.upstream.scf:SCF",
    "affine": "compiler.dialects.upstream.affine:AFFINE",
    "vector": "compiler.dialects.upstream.vector:VECTOR",
    "memref": "compiler.dialects.upstream.memref:MEMREF",
    "gpu": "compiler.dialects.upstream.gpu:GPU",
    "nvgpu": "compiler.dialects.upstream.nvgpu:NVGPU",
    "linalg": "compiler.dialects.upstream.linalg:LINALG",
    "llvm": "compiler.dialects.upstream.llvm:LLVM",
    "tensor": "compiler.dialects.upstream.tensor:TENSOR",
    "stablehlo": "compiler.dialects.upstream.stablehlo:STABLEHLO",
    "chlo": "compiler.dialects.upstream.stablehlo:CHLO",
    "sdy": "compiler.dialects.upstream.stablehlo.shardings:SDY",
}
"""Map the upstream dialects that we extend to their paths: arith on vectors, erfc, gathers, prefetches, shuffles,
asynchronous copies, MMA tiles, intrinsics, the syntax of parallel loops, padding. The other upstream dialects are
xDSL's."""

PASSES = {
    "canonicalize": "compiler.passes.canonicalize:CanonicalizePass",
    "cse": "compiler.passes.cse:CsePass",
    "bind-sizes": "compiler.passes.bind_sizes:BindSizesPass",
    "te-canonicalize": "compiler.passes.te_canonicalize:TeCanonicalizePass",
    "te-alternatives": "compiler.passes.te_alternatives:TeAlternativesPass",
    "convert-linalg-to-te": "compiler.lowering.linalg_to_te:ConvertLinalgToTePass",
    "convert-stablehlo-to-te": "compiler.lowering.stablehlo_to_te:ConvertStablehloToTePass",
    "convert-te-to-linalg": "compiler.lowering.te_to_linalg:ConvertTeToLinalgPass",
    "te-to-loop": "compiler.lowering.te_to_loop:TeToLoopPass",
    "raise-affine-to-loop": "compiler.lowering.affine_to_loop:RaiseAffineToLoopPass",
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
"""Map each of our passes that applies no schedule primitive to the path of its class, `module:name`."""

REPLACED = ("canonicalize", "cse")
"""The passes of ours that replace xDSL's of the same name, which fail on programs of ours or miss what is equal."""

Loaded: TypeAlias = Any  # a dialect, a pass or a function: whatever stands at a path

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


def load(path: str) -> Loaded:
    """Import the module of a path `module:name`, and return its object of that name."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _loader(path: str) -> Callable[[], Loaded]:
    return lambda: load(path)


class _OpenContext(Context):
    """A context that registers a dialect of a plugin, or of another package of xDSL, when one of its names is looked
    up."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """Return the class of an op, also `sched.NAME` of a plugin's primitive; its dialect is registered first. The
        name may omit a dialect of `dialect_stack`. None for an unknown op, unless the context allows unregistered
        ops."""
        self._meet(name)
        op = super().get_optional_op(name, dialect_stack=dialect_stack)
        return _op_of_plugin(name) if op is None and name.startswith("sched.") else op

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        """Return the class of a type, whose dialect is registered first; None for an unknown type, unless the context
        allows unregistered ones."""
        self._meet(name)
        return super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        """Return the class of an attribute, whose dialect is registered first; None for an unknown attribute, unless
        the context allows unregistered ones."""
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
    """Find the op `sched.NAME` of a schedule primitive that a plugin adds; None if there is none."""
    if not plugins.parts("primitive"):
        return None
    primitive = load("compiler.schedule.primitives:of_plugins")().get(name.removeprefix("sched."))
    return None if primitive is None else primitive.op


def context() -> Context:
    """Return a context of all dialects, each loaded when one of its names is first looked up, builtin at once. Also
    replaces the pattern by which xDSL's lexer reads strings, in the whole process."""
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
    """Map the names of the passes that apply schedule primitives to their classes. Importing them loads the
    analysis."""
    passes: dict[str, type[ModulePass]] = load("compiler.passes.schedule:PASSES")
    return passes


def our_passes() -> dict[str, str]:
    """Map the name of each of our passes to the first sentence of its docstring."""
    kinds = {name: load(path) for name, path in PASSES.items()} | schedule_passes()
    return {name: first_sentence(kind.__doc__ or "") for name, kind in kinds.items()}


def first_sentence(text: str) -> str:
    """Return the text of a docstring before its first full stop or colon, in one line."""
    return re.split(r"[.:](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]


def is_ours(asked: ModulePass) -> bool:
    """Whether a pass is one of this package, and not of xDSL or a plugin."""
    return asked.name in PASSES or type(asked).__module__.startswith("compiler.")


def find_pass(name: str) -> type[ModulePass] | None:
    """Return the class of a pass: ours, xDSL's, a plugin's or that of another package of xDSL; None if unknown."""
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
    """Map the names of the passes of plugins' schedule primitives to their classes."""
    if not plugins.parts("primitive"):
        return {}
    passes: dict[str, type[ModulePass]] = load("compiler.passes.schedule.declared:plugin_passes")()
    return passes


def own_passes() -> list[str]:
    """Return the names of pipelines, of our passes and of xDSL's passes, in this order."""
    return [*load("compiler.pipeline.passes:PIPELINES"), *PASSES, *schedule_passes(), *foreign_passes()]


def foreign_passes() -> list[str]:
    """Return the names of xDSL's passes, without those that a pass of ours replaces."""
    from xdsl.transforms import get_all_passes

    return [name for name in get_all_passes() if name not in PASSES]


def own_dialects() -> list[str]:
    """Return the names of our dialects, then those of xDSL's dialects."""
    from xdsl.dialects import get_all_dialects

    return [*DIALECTS, *get_all_dialects()]


def pass_names() -> list[str]:
    """Return the names of all passes and pipelines, also of plugins, but not of other packages of xDSL."""
    return [*own_passes(), *plugins.parts("pass"), *_passes_of_primitives()]


def whose_pass(name: str) -> str:
    """Describe a pass of xDSL or another package of xDSL for a message: `xDSL's pass 'cse'`, or with its entry point:
    `the pass 'x' of the plugin 'p' (module:NAME)`."""
    from importlib.metadata import entry_points

    from xdsl.transforms import get_all_passes

    if name not in get_all_passes():
        for plugin in entry_points(group="xdsl.universe"):
            if name in plugin.load().all_passes:
                return f"the pass '{name}' of the plugin '{plugin.name}' ({plugin.value})"
    return f"xDSL's pass '{name}'"


@cache
def _universes() -> Universe:
    """Load the dialects and passes of all packages with an entry point `xdsl.universe`, by a slow scan. Raises
    InputError if two of them have the same name."""
    from xdsl.universe import Universe

    try:
        return Universe.get_multiverse()
    except ValueError as error:
        raise InputError(f"the installed xDSL plugins cannot be used together: {error}") from error


def __getattr__(name: str) -> Universe:
    """Build `UNIVERSE`, our dialects and passes for xdsl-opt, at each access: it loads xDSL's tables. Passes that
    replace one of xDSL's, such as canonicalize, are not among them: xDSL refuses a name twice. Raises AttributeError
    for other names."""
    if name != "UNIVERSE":
        raise AttributeError(name)
    from xdsl.universe import Universe

    return Universe(
        all_dialects={name: _loader(path) for name, path in DIALECTS.items()},
        all_passes={name: _loader(path) for name, path in PASSES.items() if name not in REPLACED}
        | {name: partial(schedule_passes().__getitem__, name) for name in schedule_passes()},
    )
