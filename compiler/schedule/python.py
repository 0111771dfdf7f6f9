"""A script as Python: the calls of `Schedule` that record it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, FloatAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.dialects.transform import NamedSequenceOp, YieldOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from compiler.dialects.sched import choice, handle, layout, nest, staging
from compiler.program.tree import fresh

_LISTS = (
    handle.GetLoopsOp,
    handle.GetProducersOp,
    handle.GetConsumersOp,
    nest.SplitOp,
    nest.PartitionOp,
    nest.DistributeOp,
    staging.StageOp,
    choice.SamplePerfectTileOp,
)
"""The ops whose call gives a list."""


def as_python(script: ModuleOp | NamedSequenceOp, schedule: str = "s") -> str:
    """A script as a Python function of a Schedule, one call an op, which records the same script.

    %c = sched.get_block %f "C"              ->  C = s.get_block("C")
    %i, %j = sched.get_loops %c : ...        ->  i, j = s.get_loops(C)
    %o, %n = sched.split %i by [-1, 8] : ... ->  i_0, i_1 = s.split(i, [None, 8])
    """
    sequence = script if isinstance(script, NamedSequenceOp) else script.body.block.first_op
    assert isinstance(sequence, NamedSequenceOp)
    writer = _Writer(schedule)
    lines = [writer.line(op) for op in sequence.body.block.ops if not isinstance(op, YieldOp)]
    body = "\n".join(f"    {line}" for line in lines) or "    pass"
    return f"def schedule({schedule}):\n{body}"


class _Writer:
    """Names handles, and writes calls."""

    def __init__(self, schedule: str) -> None:
        self.schedule = schedule
        self.names: dict[SSAValue, str] = {}
        self.special: dict[type[Operation], Callable[..., str]] = {
            handle.GetBlockOp: lambda op: f"get_block({op.label.data!r})",
            nest.SplitOp: self._split,
            layout.PackOp: lambda op: f"pack({self._of(op.block)}, {op.buffer.data!r}, {self._blocks(op)})",
            layout.TransformLayoutOp: self._layout,
            choice.SamplePerfectTileOp: self._perfect_tile,
            choice.SampleCategoricalOp: self._categorical,
            choice.SampleLocationOp: lambda op: f"sample_location({self._of(op.block)}{_decision(op)})",
        }

    def line(self, op: Operation) -> str:
        """One call, its results named."""
        call = self.special.get(type(op), self._plain)(op)
        results = ", ".join(self._name(result) for result in op.results)
        if isinstance(op, _LISTS) and len(op.results) == 1:
            results += ","
        return f"{results} = {self.schedule}.{call}" if results else f"{self.schedule}.{call}"

    def _name(self, result: SSAValue) -> str:
        hint = "".join(c if c.isalnum() else "_" for c in result.name_hint or "x")
        hint = f"_{hint}" if hint[0].isdigit() else hint
        name = fresh(hint, {self.schedule, *self.names.values()}).replace(".", "_")
        while name in self.names.values():
            name += "_"
        self.names[result] = name
        return name

    def _of(self, value: SSAValue) -> str:
        return self.names[value]

    def _plain(self, op: Operation) -> str:
        """Operands and attributes in the order in which the op declares them, which is that of the method."""
        assert isinstance(op, IRDLOperation)
        definition = op.get_irdl_definition()
        declared = {name for name, _ in definition.operands} | definition.properties.keys()
        fields = [name for name in vars(type(op)) if name in declared]
        texts = [text for name in fields for text in self._texts(getattr(op, name))]
        return f"{op.name.removeprefix('sched.')}({', '.join(texts)})"

    def _texts(self, value: object) -> Iterator[str]:
        match value:
            case SSAValue():
                yield self._of(value)
            case Attribute():
                yield _text(value)
            case None:
                return
            case _ if isinstance(value, Sequence):
                yield from (self._of(item) for item in value)

    def _sizes(self, sizes: Sequence[int | SSAValue]) -> str:
        texts = ["None" if size == -1 else str(size) if isinstance(size, int) else self._of(size) for size in sizes]
        return f"[{', '.join(texts)}]"

    def _split(self, op: nest.SplitOp) -> str:
        tail = f", tail={op.tail.data!r}" if op.tail is not None else ""
        return f"split({self._of(op.loop)}, {self._sizes(op.sizes)}{tail})"

    def _blocks(self, op: layout.PackOp | layout.TransformLayoutOp) -> str:
        order = f", {_text(op.order)}" if op.order is not None else ""
        return f"{self._sizes(op.sizes)}{order}"

    def _layout(self, op: layout.TransformLayoutOp) -> str:
        of = f"{self._of(op.block)}, {op.buffer.data!r}"
        if op.layout is None:
            return f"block_layout({of}, {self._blocks(op)})"
        return f"transform_layout({of}, {_text(op.layout)})"

    def _perfect_tile(self, op: choice.SamplePerfectTileOp) -> str:
        most = op.innermost.value.data
        return f"sample_perfect_tile({self._of(op.loop)}, {len(op.params)}, {most}{_decision(op)})"

    def _categorical(self, op: choice.SampleCategoricalOp) -> str:
        said = "" if op.probabilities is None else f", {[p.value.data for p in op.probabilities]}"
        return f"sample_categorical({_text(op.candidates)}{said}{_decision(op)})"


def _decision(op: Operation) -> str:
    decision = op.properties.get("decision")
    return "" if decision is None else f", decision={_text(decision)}"


def _text(value: Attribute) -> str:
    match value:
        case StringAttr():
            return repr(value.data)
        case IntegerAttr() | FloatAttr():
            return str(value.value.data)
        case DenseArrayBase():
            return str([int(v) for v in value.get_values()])
        case AffineMapAttr():
            dims = ", ".join(f"d{n}" for n in range(value.data.num_dims))
            results = ", ".join(str(e).replace("floordiv", "//").replace("mod", "%") for e in value.data.results)
            return f"lambda {dims}: ({results},)"
    return repr(str(value))
