"""te.compute and te.gather: one linalg.generic each, and what its operands need."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, TensorType, f32
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.dialects.tensor import EmptyOp, ExtractSliceOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from compiler.dialects import te
from compiler.dialects.checks import element_type
from compiler.dialects.upstream.linalg.bodies import build_body
from compiler.dialects.upstream.linalg.generic import GenericOp, kinds_of
from compiler.dialects.upstream.linalg.named import FillOp
from compiler.lowering.te_to_linalg.bodies import GenericBody, signless
from compiler.types.elements import is_unsigned

Add = Callable[[Operation], SSAValue]
"""Appends an op, and returns its first result."""

_COMBINING: dict[str, tuple[Callable[..., Operation], ...]] = {
    "add": (arith.AddfOp, arith.AddiOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp, arith.MuliOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp),
    "min": (arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp),
}
"""Map each combiner to its op on floats, signed and unsigned integers."""


class GenericNest:
    """A linalg.generic under construction for an op of te over `axes`. add: appends an op to the function and returns
    its result. count: the number of axes. block, body: the generic's block, and its emitter. inputs, maps: the operands
    so far and their indexing maps."""

    def __init__(self, axes: Sequence[te.AxisAttr], add: Add) -> None:
        self.axes = axes
        self.add = add
        self.count = len(axes)
        self.block = Block()
        self.body = GenericBody(self.block, self.count)
        self.inputs: list[SSAValue] = []
        self.maps: list[AffineMap] = []

    @property
    def spatial(self) -> int:
        """The number of spatial axes."""
        return sum(not axis.is_reduce for axis in self.axes)

    def read(self, source: SSAValue, map: AffineMap) -> SSAValue:
        """Add a tensor as an input, read at `map` over the axes, or its slice with the axes' extents; return its
        argument of the body."""
        self.inputs.append(self._reduced(source, map))
        self.maps.append(map)
        return self._argument(source)

    def _argument(self, value: SSAValue) -> SSAValue:
        return self.block.insert_arg(element_type(value), len(self.block.args))

    def _reduced(self, source: SSAValue, map: AffineMap) -> SSAValue:
        """Return a tensor with the axis's extent in each dimension that one axis indexes, since linalg infers extents
        from the operands: a slice from 0, or the tensor itself if it has these extents."""
        assert isinstance(source.type, TensorType)
        shape = source.type.get_shape()
        sizes = [
            self.axes[expr.position].size if isinstance(expr, AffineDimExpr) else size
            for expr, size in zip(map.results, shape, strict=True)
        ]
        if list(shape) == sizes:
            return source
        rank = len(shape)
        return self.add(ExtractSliceOp.from_static_parameters(source, [0] * rank, sizes, [1] * rank))

    def finish(self, outputs: Sequence[SSAValue]) -> list[SSAValue]:
        """Add an empty input for the reduce axes that index no input's dimension alone, since linalg infers extents
        from the operands; then add the outputs. Return the outputs' arguments of the body."""
        stated = {e.position for map in self.maps for e in map.results if isinstance(e, AffineDimExpr)}
        missing = [dim for dim in range(self.spatial, self.count) if dim not in stated]
        if missing:
            shape = TensorType(f32, [self.axes[dim].size for dim in missing])
            self.read(self.add(EmptyOp([], shape)), AffineMap(self.count, 0, tuple(map(AffineDimExpr, missing))))
        identity = AffineMap(self.count, 0, tuple(map(AffineDimExpr, range(self.spatial))))
        self.maps += [identity] * len(outputs)
        return [self._argument(value) for value in outputs]

    def generic(self, outputs: Sequence[SSAValue], yields: Sequence[SSAValue]) -> GenericOp:
        """End the body with `yields`, and return the op with the initial values `outputs`, which is not appended.
        Requires `finish` before."""
        self.block.add_op(YieldOp(*yields))
        kinds = kinds_of(self.spatial, self.count - self.spatial)
        return GenericOp(self.inputs, outputs, self.maps, kinds, Region(self.block), [value.type for value in outputs])


def convert_compute(op: te.ComputeOp, values: dict[SSAValue, SSAValue], add: Add) -> GenericOp:
    """Append the slices, empty tensors and fills that are operands, and return the linalg.generic of a te.compute,
    which is not appended. `values` maps each te tensor to its linalg tensor; `add` appends an op and returns its
    result. Reads without a condition are inputs and come first, since arguments come before the ops of the body."""
    nest = GenericNest(op.axes.data, add)
    scalars: dict[SSAValue, SSAValue] = {}
    reads = list(zip(op.body.block.args, op.inputs, op.reads, strict=True))
    for argument, source, access in reads:
        if access.condition is None:
            scalars[argument] = nest.read(values[source], access.affine_map)
    outputs = [_output(op, number, add) for number in range(len(op.outputs))]
    accumulators = nest.finish(outputs)
    for argument, source, access in reads:
        if access.condition is not None:
            scalars[argument] = nest.body.conditional(values[source], access)
    dims = {axis.label: dim for dim, axis in enumerate(op.axes)}
    yields = nest.body.copy(op.body.block, scalars, dims)
    if op.is_reduction:
        yields = _combined(op, nest, accumulators, yields)
    return nest.generic(outputs, yields)


def convert_gather(op: te.GatherOp, values: dict[SSAValue, SSAValue], add: Add) -> GenericOp:
    """Append the slices and empty tensors that are operands, and return the linalg.generic of a te.gather, which is not
    appended. `values` maps each te tensor to its linalg tensor; `add` appends an op and returns its result. An index
    out of bounds reads the op's literal."""
    nest = GenericNest(op.axes.data, add)
    reads = list(zip(op.indices, op.reads, strict=True))
    scalars = {n: nest.read(values[s], a.affine_map) for n, (s, a) in enumerate(reads) if a.condition is None}
    output = add(EmptyOp([], signless(op.output.type)))
    nest.finish([output])
    for n, (source, access) in enumerate(reads):
        if access.condition is not None:
            scalars[n] = nest.body.conditional(values[source], access)
    value = nest.body.gathered(op, values[op.table], [scalars[n] for n in range(len(reads))])
    return nest.generic([output], [value])


def _output(op: te.ComputeOp, number: int, add: Add) -> SSAValue:
    """Append, by `add`, the initial value of result number `number`: an empty tensor, filled with the identity for a
    reduction."""
    type = signless(op.outputs[number].type)
    empty = add(EmptyOp([], type))
    if not op.is_reduction:
        return empty
    literal = op.neutral(element_type(op.outputs[number]), number)
    scalar = add(arith.ConstantOp(literal))
    body = build_body("copy", [literal.type] * 2, False, YieldOp)
    return add(FillOp.build(operands=[[scalar], [empty]], result_types=[[type]], regions=[body]))


def _combined(
    op: te.ComputeOp, nest: GenericNest, accumulators: Sequence[SSAValue], added: Sequence[SSAValue]
) -> list[SSAValue]:
    if op.joint is not None:
        block = op.joint.block
        return nest.body.copy(block, dict(zip(block.args, [*accumulators, *added], strict=True)), {})
    results = []
    for name, output, lhs, rhs in zip(op.combiners, op.outputs, accumulators, added, strict=True):
        row = 0 if isinstance(lhs.type, AnyFloat) else 2 if is_unsigned(element_type(output)) else 1
        results.append(nest.body.add(_COMBINING[name.data][row](lhs, rhs)))
    return results
