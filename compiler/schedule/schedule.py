"""`Schedule`: a loop function with the script of the primitives applied to it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from operator import index
from typing import Any, TypeAlias, TypeVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    f64,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from compiler import stated
from compiler.analysis.verify import Verdict, verify_schedule
from compiler.dialects import loop as loop_dialect
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import find_function
from compiler.dialects.sched import choice, handle, kind, layout, nest, pipelining, placement, reduction, staging
from compiler.dialects.sched.base import BlockType, LoopType, ParamType, SchedOp
from compiler.errors import ScheduleError, StrataError
from compiler.interpret.combination import check_combiners
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import write
from compiler.schedule.calls import CALLS, neighbours
from compiler.schedule.state import State, empty_script

Handle = SSAValue
"""A handle on a block, loop or parameter: the result of the script's op that gave it."""


Size: TypeAlias = int | Handle
"""A constant, or the handle of a parameter."""


Item = TypeVar("Item")
MOST_PARTS = 64
"""How many factors of an extent may be chosen at once: 64 bits have no more above one."""


class Schedule:
    """A loop-level function and the script that leads from the original to it.

    Each method is one op of the `sched` dialect: it is planned, judged by `legal`, applied and recorded. A refusal
    raises ScheduleError and changes nothing. `print(schedule.script)` replays to the same IR; `module` is the module
    with the scheduled function.

    `x` is a loop-level module, such as `compiler.lower` gives of a te function; `seed` is that of choices without a
    decision. Raises ScheduleError for a module that is not at the loop level, InputError for one with several
    functions unnamed.
    """

    def __init__(self, x: Any, name: str | None = None, seed: int = 0) -> None:
        module = _loop_module(x)
        function = find_function(module, name)
        if not any(isinstance(op, loop_dialect.ForOp | loop_dialect.Placed) for op in function.walk()):
            raise ScheduleError(f"@{function.sym_name.data} is not at the loop level; lower it with te-to-loop first")
        verify_module(module)
        check_combiners(module)
        self.name = function.sym_name.data
        self.original = module.clone()
        self.script, body = empty_script()
        self._state = State(read(function), random.Random(seed), body)
        self._written: tuple[Program, ModuleOp] | None = None

    @property
    def program(self) -> Program:
        """The scheduled program, as the primitives see it."""
        return self._state.program

    @property
    def module(self) -> ModuleOp:
        """The module with the scheduled function."""
        if self._written is None or self._written[0] is not self.program:
            module = self.original.clone()
            old = find_function(module, self.name)
            new = write(self.program)
            new.attributes |= {k: v for k, v in old.attributes.items() if k not in new.attributes}
            module.body.block.insert_op_before(new, old)
            module.body.block.erase_op(old)
            self._written = self.program, module
        return self._written[1]

    @property
    def function(self) -> FuncOp:
        """The scheduled function."""
        return find_function(self.module, self.name)

    def __str__(self) -> str:
        return str(self.script)

    def fork(self) -> tuple[Schedule, dict[Handle, Handle]]:
        """A schedule with the same program and script that goes its own way, and its handles by those of this one."""
        new = object.__new__(Schedule)
        handles: dict[Handle, Handle] = {}
        new.name, new.original, new._written = self.name, self.original, None
        new.script = self.script.clone(handles)
        new._state = self._state.fork(script_of(new.script).body.block, handles)
        return new, handles

    def verify(self) -> Verdict:
        """Whether the scheduled function computes what the original does: proved, refuted or undecided (law 2)."""
        return verify_schedule(self.program, read(find_function(self.original, self.name)))

    def label(self, handle: Handle) -> str:
        """The name of the block or loop that a handle stands for."""
        value = self._value(handle)
        return self.program.loops[value].label if isinstance(value, int) else value

    def extent(self, loop: Handle) -> int:
        """The extent of a loop."""
        value = self._value(loop)
        if not isinstance(value, int):
            raise ScheduleError("it is a block, which has no extent", "extent", f"block '{value}'")
        return self.program.loops[value].extent

    def value(self, parameter: Size) -> int:
        """The integer that a choice has decided; a constant's own."""
        if isinstance(parameter, int):
            return parameter
        value = self._state.values.get(parameter) if isinstance(parameter, SSAValue) else None
        if not isinstance(value, int) or not isinstance(parameter.type, ParamType):
            raise ScheduleError("it is not the handle of a parameter of this schedule", "value")
        return value

    def _value(self, handle: Handle) -> int | str:
        """What a handle on a block or loop stands for, if that is still there."""
        value = self._state.values.get(handle) if isinstance(handle, SSAValue) else None
        if value is None or not isinstance(handle.type, BlockType | LoopType):
            raise ScheduleError("it is not the handle of a block or loop of this schedule")
        by = self._state.consumed.get(handle)
        if by or value not in (self.program.loops if isinstance(value, int) else self.program.blocks):
            raise ScheduleError(f"it has been consumed by '{by}'" if by else "it is no loop, but a location")
        return value

    def apply(self, script: ModuleOp | NamedSequenceOp) -> Schedule:
        """Apply the ops of a script, which are recorded here as well; open choices are decided on the way.

        Raises ScheduleError at the first refusal, with the op as its `op`; what came before it stays applied.
        """
        sequence = script_of(script)
        values: dict[SSAValue, SSAValue] = {sequence.body.block.args[0]: self._state.function}
        for op in sequence.body.block.ops:
            if isinstance(op, YieldOp):
                break
            values.update(zip(op.results, self.step(op, values), strict=True))
        return self

    def step(self, op: Operation, handles: Mapping[Handle, Handle]) -> list[Handle]:
        """Apply one op of another script, its operands given as handles of this schedule, and give its results.

        Raises ScheduleError, with the op as its `op`.
        """
        if not isinstance(op, SchedOp):
            name = op.name if isinstance(op, Operation) else type(op).__name__
            raise _at(op, ScheduleError("it is not an op of the sched dialect", name))
        if not isinstance(handles, Mapping):
            raise _at(op, ScheduleError("the handles are not given by those of the other script", op.name))
        copy = op.clone(dict(handles))
        try:
            self._state.apply(copy, CALLS[type(copy)])
        except ScheduleError as error:
            raise _at(op, error) from error
        return list(copy.results)

    @property
    def root(self) -> Handle:
        """The handle on the function, which is the argument of the script."""
        return self._state.function

    @property
    def length(self) -> int:
        """How many ops the script has."""
        return len(self._state.script.ops) - 1

    def _run(
        self,
        kind: type[SchedOp],
        operands: Sequence[Handle],
        properties: dict[str, Attribute] | None = None,
        results: Sequence[Attribute] = (),
    ) -> list[Handle]:
        """Build the op of a call, apply it, and give its results. Raises ScheduleError."""
        for operand in operands:
            if not isinstance(operand, SSAValue):
                raise ScheduleError(f"it takes handles, not a {type(operand).__name__}", kind.name[6:])
        op = kind.create(operands=operands, properties=properties or {}, result_types=results)
        try:
            self._state.apply(op, CALLS[kind])
        except StrataError:
            op.erase()
            raise
        return list(op.results)

    # --- handles ------------------------------------------------------------------------------------------------

    def get_block(self, label: str) -> Handle:
        """The block of that name."""
        properties: dict[str, Attribute] = {"label": _text(label)}
        return self._run(handle.GetBlockOp, [self._state.function], properties, [BlockType()])[0]

    def get_loops(self, block: Handle) -> list[Handle]:
        """The loops around a block, outermost first."""
        count = len(self.program.enclosing(self._label(block, "get_loops")))
        return self._run(handle.GetLoopsOp, [block], results=[LoopType()] * count)

    def get_producers(self, block: Handle) -> list[Handle]:
        """The blocks whose results a block reads, in the order of the program."""
        found = neighbours(self.program, self._label(block, "get_producers"), True)
        return self._run(handle.GetProducersOp, [block], results=[BlockType()] * len(found))

    def get_consumers(self, block: Handle) -> list[Handle]:
        """The blocks that read a block's results, in the order of the program."""
        found = neighbours(self.program, self._label(block, "get_consumers"), False)
        return self._run(handle.GetConsumersOp, [block], results=[BlockType()] * len(found))

    def _label(self, block: Handle, primitive: str) -> str:
        value = self._state.values.get(block) if isinstance(block, SSAValue) else None
        if not isinstance(value, str):
            raise ScheduleError("it takes the handle of a block of this schedule", primitive)
        by = self._state.consumed.get(block)
        if by is not None:
            raise ScheduleError(f"it has been consumed by '{by}'", primitive, f"block '{value}'")
        return value

    # --- loops --------------------------------------------------------------------------------------------------

    def split(self, loop: Handle, factors: Sequence[Size | None], tail: str = "guard") -> list[Handle]:
        """Split a loop into a nest, outermost factor first; one factor may be None. See `primitives.split.split`."""
        factors = _listed(factors, "factors")
        static, params = _sizes([-1 if factor is None else factor for factor in factors])
        said = _text(tail)
        properties: dict[str, Attribute] = {"factors": static} | ({} if said.data == "guard" else {"tail": said})
        return self._run(nest.SplitOp, [loop, *params], properties, [LoopType()] * len(factors))

    def partition(self, loop: Handle, position: int) -> list[Handle]:
        """Cut a loop in two, one after the other. See `primitives.split.partition`."""
        return self._run(nest.PartitionOp, [loop], {"position": _int(position)}, [LoopType()] * 2)

    def fuse(self, *loops: Handle) -> Handle:
        """Fuse perfectly nested loops into one. See `primitives.nest.fuse`."""
        return self._run(nest.FuseOp, loops, results=[LoopType()])[0]

    def reorder(self, *loops: Handle) -> None:
        """Permute loops of one nest into this order. See `primitives.nest.reorder`."""
        self._run(nest.ReorderOp, loops)

    def merge(self, first: Handle, second: Handle, shift: int = 0) -> Handle:
        """Let two adjacent nests share their outer loop. See `primitives.merge.merge`."""
        properties: dict[str, Attribute] = {"shift": _int(shift)} if _int(shift).value.data else {}
        return self._run(nest.MergeOp, [first, second], properties, [LoopType()])[0]

    def distribute(self, loop: Handle, block: Handle) -> list[Handle]:
        """Cut a loop's body after a block, a loop for each part. See `primitives.merge.distribute`."""
        return self._run(nest.DistributeOp, [loop, block], results=[LoopType()] * 2)

    def unroll(self, loop: Handle) -> None:
        """Mark a loop to be unrolled. See `primitives.kind.unroll`."""
        self._run(kind.UnrollOp, [loop])

    def vectorize(self, loop: Handle) -> None:
        """Mark a loop whose iterations become lanes. See `primitives.kind.vectorize`."""
        self._run(kind.VectorizeOp, [loop])

    def parallel(self, loop: Handle) -> None:
        """Mark a loop whose iterations run on several threads. See `primitives.kind.parallel`."""
        self._run(kind.ParallelOp, [loop])

    def bind(self, loop: Handle, thread: str) -> None:
        """Bind a loop to a hardware index. See `primitives.kind.bind`."""
        self._run(kind.BindOp, [loop], {"thread": _text(thread)})

    def tensorize(self, loop: Handle, intrinsic: str) -> None:
        """Mark a nest that a declared intrinsic replaces. See `primitives.kind.tensorize`."""
        self._run(kind.TensorizeOp, [loop], {"intrinsic": _text(intrinsic)})

    def annotate(self, loop: Handle, key: str, value: Attribute | int | float | str) -> None:
        """Attach a named attribute to a loop. See `primitives.kind.annotate`."""
        self._run(kind.AnnotateOp, [loop], {"key": _text(key), "value": _attribute(value)})

    # --- placement ----------------------------------------------------------------------------------------------

    def compute_at(self, block: Handle, loop: Handle) -> None:
        """Move a producer into a loop of its consumers. See `primitives.place.compute_at`."""
        self._run(placement.ComputeAtOp, [block, loop])

    def reverse_compute_at(self, block: Handle, loop: Handle) -> None:
        """Move a consumer into a loop of its producer. See `primitives.place.reverse_compute_at`."""
        self._run(placement.ReverseComputeAtOp, [block, loop])

    def inline(self, block: Handle) -> None:
        """Replace every read of a block's result by its body. See `primitives.inline.inline`."""
        self._run(placement.InlineOp, [block])

    def reverse_inline(self, block: Handle) -> None:
        """Apply an elementwise consumer where its producer writes. See `primitives.inline.reverse_inline`."""
        self._run(placement.ReverseInlineOp, [block])

    # --- reductions ---------------------------------------------------------------------------------------------

    def decompose_reduction(self, block: Handle, loop: Handle) -> Handle:
        """Make the init of a reduction a block. See `primitives.reduce.decompose_reduction`."""
        return self._run(reduction.DecomposeReductionOp, [block, loop], results=[BlockType()])[0]

    def rfactor(self, block: Handle, loop: Handle) -> Handle:
        """Reduce along one loop into partial results. See `primitives.reduce.rfactor`."""
        return self._run(reduction.RfactorOp, [block, loop], results=[BlockType()])[0]

    # --- staging ------------------------------------------------------------------------------------------------

    def cache_read(self, block: Handle, buffer: str, scope: str = "local") -> Handle:
        """Read a buffer through a copy. See `primitives.cache.cache_read`."""
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "scope": _text(scope)}
        return self._run(staging.CacheReadOp, [block], properties, [BlockType()])[0]

    def cache_write(self, block: Handle, scope: str = "local") -> Handle:
        """Write a buffer through a copy. See `primitives.cache.cache_write`."""
        return self._run(staging.CacheWriteOp, [block], {"scope": _text(scope)}, [BlockType()])[0]

    def stage(self, loop: Handle, buffer: str, scope: str = "local") -> list[Handle]:
        """Work on a copy of a window of a buffer. See `primitives.cache.stage`."""
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "scope": _text(scope)}
        return self._run(staging.StageOp, [loop], properties, [BlockType()] * 2)

    def lift_alloc(self, buffer: str, loop: Handle | None = None) -> None:
        """Let a buffer live longer. See `primitives.memory.lift_alloc`."""
        self._run(staging.LiftAllocOp, [loop] if loop is not None else [], {"buffer": _text(buffer)})

    def set_scope(self, block: Handle, scope: str) -> None:
        """Set the scope of the buffer that a block writes. See `primitives.memory.set_scope`."""
        self._run(staging.SetScopeOp, [block], {"scope": _text(scope)})

    def transform_layout(self, block: Handle, buffer: str, by: AffineMap | Callable[..., Any]) -> None:
        """Index a temporary through a map, or a Python function. See `primitives.memory.transform_layout`."""
        map = by if isinstance(by, AffineMap) else self._layout(buffer, by)
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "layout": AffineMapAttr(map), "tiles": _ints([])}
        self._run(layout.TransformLayoutOp, [block], properties)

    def block_layout(self, block: Handle, buffer: str, tiles: Sequence[Size], order: Sequence[int] = ()) -> None:
        """Store a temporary in blocks. See `primitives.memory.transform_layout`."""
        static, params = _sizes(tiles)
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "tiles": static}
        if len(_ints(order)):
            properties["order"] = _ints(order)
        self._run(layout.TransformLayoutOp, [block, *params], properties)

    def _layout(self, buffer: str, by: Callable[..., Sequence[AffineExpr]]) -> AffineMap:
        """The map that a Python function of a buffer's indices gives."""
        if _text(buffer).data not in self.program.buffers:
            raise ScheduleError("there is no such buffer", "transform_layout", f"buffer '{buffer}'")
        rank = len(self.program.buffers[buffer].shape)
        try:
            results = by(*(AffineExpr.dimension(d) for d in range(rank)))
            exprs = [AffineExpr.constant(e) if isinstance(e, int) else e for e in results]
        except (TypeError, IndexError, ValueError, ArithmeticError, NotImplementedError) as error:
            reason = f"the layout is no quasi-affine function of {rank} indices: {error}"
            raise ScheduleError(reason, "transform_layout", f"buffer '{buffer}'") from error
        if not all(isinstance(e, AffineExpr) for e in exprs):
            reason = "the layout's results are not all made of its indices"
            raise ScheduleError(reason, "transform_layout", f"buffer '{buffer}'")
        return AffineMap(rank, 0, tuple(exprs))

    def pack(self, block: Handle, buffer: str, tiles: Sequence[Size], order: Sequence[int] = ()) -> Handle:
        """Read a buffer through a blocked, padded copy. See `primitives.memory.pack`."""
        static, params = _sizes(tiles)
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "tiles": static}
        if len(_ints(order)):
            properties["order"] = _ints(order)
        return self._run(layout.PackOp, [block, *params], properties, [BlockType()])[0]

    def pad(self, block: Handle, buffer: str) -> Handle:
        """Read a buffer through a copy with a border. See `primitives.pad.pad`."""
        return self._run(layout.PadOp, [block], {"buffer": _text(buffer)}, [BlockType()])[0]

    def storage_align(self, block: Handle, dim: int, factor: int, offset: int = 0) -> None:
        """Pad a block's buffer. See `primitives.memory.storage_align`."""
        properties: dict[str, Attribute] = {"dim": _int(dim), "factor": _int(factor), "offset": _int(offset)}
        self._run(layout.StorageAlignOp, [block], properties)

    def swizzle(self, block: Handle, width: int) -> None:
        """Rotate the columns of a block's buffer by the row. See `primitives.memory.swizzle`."""
        self._run(layout.SwizzleOp, [block], {"width": _int(width)})

    def prefetch(self, loop: Handle, buffer: str, ahead: int, over: Handle | None = None) -> None:
        """Ask for elements some iterations early. See `primitives.pipeline.prefetch`."""
        properties: dict[str, Attribute] = {"buffer": _text(buffer), "distance": _int(ahead)}
        self._run(pipelining.PrefetchOp, [loop] if over is None else [loop, over], properties)

    def double_buffer(self, block: Handle) -> None:
        """Give a block's buffer two halves. See `primitives.pipeline.double_buffer`."""
        self._run(pipelining.DoubleBufferOp, [block])

    def software_pipeline(self, loop: Handle, stages: Sequence[int]) -> Handle:
        """Overlap the iterations of a loop. See `primitives.pipeline.software_pipeline`."""
        return self._run(pipelining.SoftwarePipelineOp, [loop], {"stages": _ints(stages)}, [LoopType()])[0]

    # --- choices ------------------------------------------------------------------------------------------------

    def sample_perfect_tile(
        self, loop: Handle, parts: int, innermost: int = 64, decision: Sequence[int] | None = None
    ) -> list[Handle]:
        """Choose factors whose product is a loop's extent. See `sample.perfect_tile`."""
        properties: dict[str, Attribute] = {"innermost": _int(innermost)}
        if decision is not None:
            properties["decision"] = _ints(decision)
        return self._run(choice.SamplePerfectTileOp, [loop], properties, [ParamType()] * _count(parts))

    def sample_categorical(
        self,
        candidates: Sequence[int],
        probabilities: Sequence[float] | None = None,
        decision: int | None = None,
        name: str | None = None,
    ) -> Handle:
        """Choose one of several integers; without probabilities all are as likely. `name` is that of the handle."""
        properties: dict[str, Attribute] = {"candidates": _ints(candidates)}
        if probabilities is not None:
            properties["probabilities"] = ArrayAttr([_float(p) for p in _listed(probabilities, "probabilities")])
        if decision is not None:
            properties["decision"] = _int(decision)
        (chosen,) = self._run(choice.SampleCategoricalOp, [], properties, [ParamType()])
        if name is not None and SSAValue.is_valid_name(name):
            chosen.name_hint = name
        return chosen

    def multiple(self, size: Size, factor: int) -> Size:
        """A multiple of a parameter, or of a constant. See `sample.multiple`."""
        if isinstance(size, int):
            return size * int(_int(factor).value.data)
        return self._run(choice.MultipleOp, [size], {"factor": _int(factor)}, [ParamType()])[0]

    def product(self, *sizes: Size) -> Size:
        """The product of parameters and constants. See `sample.product`."""
        number = prod(size for size in sizes if isinstance(size, int))
        params = [size for size in sizes if not isinstance(size, int)]
        if not params:
            return number
        found = params[0] if len(params) == 1 else self._run(choice.ProductOp, params, {}, [ParamType()])[0]
        return found if number == 1 else self.multiple(found, number)

    def sample_location(self, block: Handle, decision: int | None = None) -> Handle:
        """Choose the loop at which a block is computed; -1 leaves it where it is, -2 inlines it."""
        properties: dict[str, Attribute] = {} if decision is None else {"decision": _int(decision)}
        return self._run(choice.SampleLocationOp, [block], properties, [LoopType()])[0]

    def auto(self, block: Handle) -> None:
        """Derive the choices for a block here, in a template of a search (`autotune.rules.template`); refused here."""
        self._run(choice.AutoOp, [block])


def replay(script: ModuleOp | NamedSequenceOp, x: Any, name: str | None = None, seed: int = 0) -> Schedule:
    """A new schedule of a function, or of a Schedule's original, by a script."""
    return Schedule(x.original if isinstance(x, Schedule) else x, name, seed).apply(script)


def _loop_module(x: Any) -> ModuleOp:
    module = x if isinstance(x, ModuleOp) else getattr(x, "module", None)
    if not isinstance(module, ModuleOp):
        raise ScheduleError(f"a schedule is of a te function or a loop-level module, not of a {type(x).__name__}")
    return module


def script_of(script: ModuleOp | NamedSequenceOp) -> NamedSequenceOp:
    """The one script of a module. Raises ScheduleError where there is none, or several."""
    if not isinstance(script, ModuleOp | NamedSequenceOp):
        raise ScheduleError(f"a script is a module with one transform.named_sequence, not a {type(script).__name__}")
    found = (
        [script] if isinstance(script, NamedSequenceOp) else [o for o in script.ops if isinstance(o, NamedSequenceOp)]
    )
    if len(found) != 1:
        raise ScheduleError(f"a script is one transform.named_sequence, and there are {len(found)}")
    taken = sum(len(block.args) for block in found[0].body.blocks)
    if taken != 1:
        raise _at(found[0], ScheduleError(f"a script takes the function, one handle, and this one takes {taken}"))
    return found[0]


def _at(op: Operation, error: ScheduleError) -> ScheduleError:
    error.op = op
    return error


def _int(value: object) -> IntegerAttr:
    """An integer of 64 bits. Raises ScheduleError for anything else."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ScheduleError(f"{value!r} is not an integer") from None
    if not -(2**63) <= number < 2**63:
        raise ScheduleError(f"{number} does not fit into 64 bits")
    return IntegerAttr(number, i64)


def _float(value: object) -> FloatAttr:
    if not isinstance(value, int | float):
        raise ScheduleError(f"{value!r} is not a number")
    return FloatAttr(float(_int(value).value.data) if isinstance(value, int) else value, f64)


def _count(value: object) -> int:
    """How many factors a choice has."""
    return stated.integer("parts", value, 1, MOST_PARTS, ScheduleError)


def _listed(values: Iterable[Item], what: str) -> list[Item]:
    if not isinstance(values, Iterable):
        raise ScheduleError(f"{what}={values!r} is not a list")
    return list(values)


def _ints(values: object) -> DenseArrayBase:
    if not isinstance(values, Iterable):
        raise ScheduleError(f"{values!r} is not a list of integers")
    return DenseArrayBase.from_list(i64, [int(_int(value).value.data) for value in values])


def _sizes(values: object) -> tuple[DenseArrayBase, list[Handle]]:
    """Constants with a marker in place of each parameter, and the parameters."""
    if not isinstance(values, Iterable):
        raise ScheduleError(f"{values!r} is not a list of sizes")
    static, params = split_dynamic_index_list(
        [v if isinstance(v, SSAValue) else _small(v) for v in values], DYNAMIC_INDEX
    )
    return _ints(static), params


def _small(value: object) -> int:
    """An integer that is not taken for the marker of a parameter."""
    return max(int(_int(value).value.data), DYNAMIC_INDEX + 1)


def _text(value: object) -> StringAttr:
    if not isinstance(value, str):
        raise ScheduleError(f"{value!r} is not a name")
    return StringAttr(value)


def _attribute(value: object) -> Attribute:
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, Attribute | str):
        return value if isinstance(value, Attribute) else StringAttr(value)
    return _int(value)
