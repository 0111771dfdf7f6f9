"""Every name strata-opt knows, one line each, loaded when used."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from xdsl.context import Context

from compiler.errors import InputError

if TYPE_CHECKING:
    from xdsl.ir import Attribute, Operation, TypeAttribute
    from xdsl.passes import ModulePass
    from xdsl.universe import Universe

VERSION = "0.1.0"

DIALECTS = {
    "te": "compiler.dialects.te:TE",
    "loop": "compiler.dialects.loop:LOOP",
    "sched": "compiler.dialects.sched:SCHED",
    "intr": "compiler.dialects.intr:INTR",
    "unit": "compiler.dialects.tile_intrinsics:UNIT",
}
"""Our dialects."""

UPSTREAM = {
    "arith": "compiler.dialects.upstream.arith:ARITH",
    "vector": "compiler.dialects.upstream.vector:VECTOR",
    "memref": "compiler.dialects.upstream.memref:MEMREF",
    "gpu": "compiler.dialects.upstream.gpu:GPU",
    "nvgpu": "compiler.dialects.upstream.nvgpu:NVGPU",
}
"""Upstream dialects that we extend: arith on vectors, gathers, prefetches, shuffles, asynchronous copies, products of
small matrices. xDSL has the others as they are."""

PASSES = {
    "te-to-loop": ("compiler.lowering.te_to_loop:TeToLoopPass", "tensor expressions to loop nests"),
    "check-combiners": (
        "compiler.passes.check_combiners:CheckCombinersPass",
        "test that regions which combine are neutral at their identity and free of order",
    ),
    "extend-floats": (
        "compiler.passes.extend_floats:ExtendFloatsPass",
        "compute in f32 what is computed in bf16, and round each result",
    ),
    "reorder-contiguous": (
        "compiler.passes.reorder_contiguous:ReorderContiguousPass",
        "the default loop order: contiguous accesses innermost",
    ),
    "split-constants": (
        "compiler.passes.split_constants:SplitConstantsPass",
        "what depends on constant arguments alone to a function of its own, which is run once",
    ),
    "decompose-reductions": (
        "compiler.passes.decompose_reductions:DecomposeReductionsPass",
        "make the init of every reduction an explicit nest",
    ),
    "verify-schedule": (
        "compiler.passes.verify_schedule:VerifySchedulePass",
        "prove that scheduled functions compute what their originals do",
    ),
    "apply-schedule": ("compiler.passes.schedule.script:ApplySchedulePass", "apply a script of schedule primitives"),
    "tile": ("compiler.passes.schedule.loops:TilePass", "split loops of a block by tile sizes, tiles outside"),
    "split": ("compiler.passes.schedule.loops:SplitPass", "split a loop by factors"),
    "partition": ("compiler.passes.schedule.loops:PartitionPass", "cut a loop in two at a position"),
    "fuse-loops": ("compiler.passes.schedule.loops:FuseLoopsPass", "fuse perfectly nested loops into one"),
    "reorder": ("compiler.passes.schedule.loops:ReorderPass", "permute loops of a nest"),
    "merge": ("compiler.passes.schedule.loops:MergePass", "let two adjacent nests share their outer loop"),
    "distribute": ("compiler.passes.schedule.loops:DistributePass", "cut the body of a loop after a block"),
    "unroll": ("compiler.passes.schedule.loops:UnrollPass", "mark a loop to be unrolled"),
    "vectorize": ("compiler.passes.schedule.loops:VectorizePass", "mark a loop whose iterations become lanes"),
    "parallelize": (
        "compiler.passes.schedule.loops:ParallelizePass",
        "mark a loop whose iterations run on several threads",
    ),
    "tensorize": ("compiler.passes.schedule.loops:TensorizePass", "mark a nest that a declared intrinsic replaces"),
    "bind-threads": ("compiler.passes.schedule.loops:BindThreadsPass", "bind loops to hardware indices"),
    "annotate": ("compiler.passes.schedule.loops:AnnotatePass", "attach a number or a word to a loop"),
    "prefetch": ("compiler.passes.schedule.loops:PrefetchPass", "ask for elements some iterations early"),
    "software-pipeline": ("compiler.passes.schedule.loops:SoftwarePipelinePass", "overlap the iterations of a loop"),
    "compute-at": ("compiler.passes.schedule.placement:ComputeAtPass", "move a producer into a loop of its consumers"),
    "reverse-compute-at": (
        "compiler.passes.schedule.placement:ReverseComputeAtPass",
        "move a consumer into a loop of its producer",
    ),
    "fuse": ("compiler.passes.schedule.placement:FusePass", "fuse an elementwise consumer into a loop of its producer"),
    "inline": ("compiler.passes.schedule.placement:InlinePass", "replace every read of a block's result by its body"),
    "reverse-inline": (
        "compiler.passes.schedule.placement:ReverseInlinePass",
        "apply an elementwise consumer where its producer writes",
    ),
    "cache-read": ("compiler.passes.schedule.staging:CacheReadPass", "read a buffer through a copy"),
    "cache-write": ("compiler.passes.schedule.staging:CacheWritePass", "write a buffer through a copy"),
    "stage": ("compiler.passes.schedule.staging:StagePass", "work on a copy of the window of a buffer"),
    "pack": ("compiler.passes.schedule.staging:PackPass", "read a buffer through a blocked, padded copy"),
    "transform-layout": ("compiler.passes.schedule.staging:TransformLayoutPass", "index a temporary through a map"),
    "lift-alloc": ("compiler.passes.schedule.staging:LiftAllocPass", "let a buffer live longer"),
    "set-scope": ("compiler.passes.schedule.staging:SetScopePass", "set the scope of the buffer that a block writes"),
    "pad": ("compiler.passes.schedule.staging:PadPass", "read a buffer through a copy with a border"),
    "storage-align": ("compiler.passes.schedule.staging:StorageAlignPass", "pad a block's buffer to a stride"),
    "swizzle": ("compiler.passes.schedule.staging:SwizzlePass", "rotate the columns of a block's buffer by the row"),
    "double-buffer": ("compiler.passes.schedule.staging:DoubleBufferPass", "give a block's buffer two halves"),
    "decompose-reduction": (
        "compiler.passes.schedule.reduction:DecomposeReductionPass",
        "make the init of one reduction a block",
    ),
    "rfactor": ("compiler.passes.schedule.reduction:RfactorPass", "reduce along one loop into partial results"),
    "loop-to-gpu": (
        "compiler.lowering.loop_to_gpu:LoopToGpuPass",
        "nests of bound loops to kernels and their launches",
    ),
    "loop-to-low": ("compiler.lowering.loop_to_low:LoopToLowPass", "loop nests to scf, memref and vector"),
    "check-bounds": (
        "compiler.passes.check_bounds:CheckBoundsPass",
        "refuse accesses that surely leave their buffers",
    ),
    "transpose-scatters": (
        "compiler.passes.transpose_scatters:TransposeScattersPass",
        "store what neighbouring scatters write as vectors, transposed in registers",
    ),
    "promote-buffers": (
        "compiler.passes.promote_buffers:PromoteBuffersPass",
        "accumulators in memory to loop-carried values",
    ),
    "expand-math": (
        "compiler.passes.expand_math:ExpandMathPass",
        "exp, log, tanh, erf, sin and their kin to polynomials, within documented bounds",
    ),
    "plan-buffers": ("compiler.passes.plan_buffers:PlanBuffersPass", "temporaries to few shared slots"),
}
"""Our passes: where each is, and what it does in one line."""

_STRING = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


def load(path: str) -> Any:
    """The object at `module:name`."""
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _loader(path: str) -> Callable[[], Any]:
    return lambda: load(path)


class _OpenContext(Context):
    """A context that asks other packages' universes for a dialect that neither we nor xDSL have."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        """The op of that name, its dialect registered first."""
        self._meet(name)
        return super().get_optional_op(name, dialect_stack=dialect_stack)

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
            factory = _plugins().all_dialects.get(dialect)
            if factory is not None:
                self.register_dialect(dialect, factory)


def context() -> Context:
    """A context in which every dialect is registered and loaded when first met."""
    from xdsl.dialects import get_all_dialects
    from xdsl.utils.mlir_lexer import MLIRLexer

    # xDSL's own pattern takes exponential time over a string that is never closed.
    MLIRLexer._unescaped_characters_regex = _STRING
    result = _OpenContext()
    ours = {name: _loader(path) for name, path in (DIALECTS | UPSTREAM).items()}
    for name, factory in (get_all_dialects() | ours).items():
        result.register_dialect(name, factory)
    result.load_registered_dialect("builtin")
    return result


def find_pass(name: str) -> type[ModulePass] | None:
    """The pass of that name: ours, or xDSL's, or another package's; None if there is none."""
    if name in PASSES:
        found: type[ModulePass] = load(PASSES[name][0])
        return found
    from xdsl.transforms import get_all_passes

    factory = get_all_passes().get(name) or _plugins().all_passes.get(name)
    return None if factory is None else factory()


def pass_names() -> list[str]:
    """The names of our passes and of xDSL's."""
    from xdsl.transforms import get_all_passes

    return [*PASSES, *get_all_passes()]


def whose_pass(name: str) -> str:
    """A pass that is not ours, in words: xDSL's, or with the entry point of the plugin that declares it."""
    from importlib.metadata import entry_points

    from xdsl.transforms import get_all_passes

    if name not in get_all_passes():
        for plugin in entry_points(group="xdsl.universe"):
            if name in plugin.load().all_passes:
                return f"the pass '{name}' of the plugin '{plugin.name}' ({plugin.value})"
    return f"xDSL's pass '{name}'"


@cache
def _plugins() -> Universe:
    """What installed packages declare; the scan of entry points is slow, so only for unknown names."""
    from xdsl.universe import Universe

    try:
        return Universe.get_multiverse()
    except ValueError as error:
        raise InputError(f"the installed xDSL plugins cannot be used together: {error}") from error


def __getattr__(name: str) -> Any:
    """`UNIVERSE`, what the stock xdsl-opt discovers; built on demand, since xDSL's tables take a while."""
    if name != "UNIVERSE":
        raise AttributeError(name)
    from xdsl.universe import Universe

    return Universe(
        all_dialects={name: _loader(path) for name, path in DIALECTS.items()},
        all_passes={name: _loader(path) for name, (path, _) in PASSES.items()},
    )
