"""Structured ops, linalg.generic and the named ones: a te.compute for the outputs of each map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, IntegerAttr, IntegerType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from compiler.dialects import te
from compiler.dialects.access import AccessAttr, AxisAttr, axis_attribute
from compiler.dialects.upstream.arith import SelectOp
from compiler.dialects.upstream.linalg.named import StructuredNamedOp
from compiler.lowering.linalg_to_te.bodies import ComputeBody
from compiler.lowering.linalg_to_te.combiners import OutputUpdate, are_separate, combination_of, combinings
from compiler.lowering.linalg_to_te.copies import copy_body
from compiler.lowering.linalg_to_te.joint import JointUpdate, arg_extremum, extremum_identity, joint_update
from compiler.lowering.linalg_to_te.values import Literal, TeValues, refusal
from compiler.types.dtypes import row_of


@dataclass(frozen=True)
class IterationSpace:
    """The iteration space of a structured op for the outputs with one indexing map. axes: te axes, the output's in its
    order, then reduce axes. exprs: for each iterator of the op, an expression over the axes."""

    axes: list[AxisAttr]
    exprs: list[AffineExpr]

    @property
    def spatial(self) -> list[AxisAttr]:
        """The axes that index the result, in order."""
        return [axis for axis in self.axes if not axis.is_reduce]

    def rebase(self, map: AffineMap) -> AffineMap:
        """Return a map of the op's iterators as a map of the axes."""
        return AffineMap(len(self.axes), 0, tuple(e.replace_dims_and_symbols(self.exprs, ()) for e in map.results))


def convert_structured(op: LinalgStructuredOperation, values: TeValues) -> None:
    """Append a te.compute, and for a reduction from other initial values a second one, for the outputs of each indexing
    map. Raises LoweringError for an op without a te form."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    count = len(op.res)
    by_map: dict[AffineMap, list[int]] = {}
    for n, map in enumerate(maps[len(maps) - count :]):
        by_map.setdefault(map, []).append(n)
    for map, outputs in by_map.items():
        _Conversion(op, values, maps, _space(op, maps, map, values)).convert(outputs)


def _space(
    op: LinalgStructuredOperation, maps: Sequence[AffineMap], output: AffineMap, values: TeValues
) -> IterationSpace:
    """Return the iteration space for an output's map. A result 0 of the map in a dimension of size 1 is an axis of
    extent 1. Raises LoweringError for a map that is otherwise no permutation of the parallel iterators of more than one
    iteration, and for window iterators."""
    extents, names = _extents(op, maps, values), _names(op, maps[0].num_dims)
    reduction = [kind == IteratorTypeAttr.reduction() for kind in op.get_iterator_types()]
    if any(kind == IteratorTypeAttr.window() for kind in op.get_iterator_types()):
        raise refusal(op, "has window iterators, which are no loops of te")
    axes: list[AxisAttr] = []
    exprs: dict[int, AffineExpr] = {}
    for position, expr in enumerate(output.results):
        if isinstance(expr, AffineDimExpr) and expr.position not in exprs and not reduction[expr.position]:
            exprs[expr.position] = AffineDimExpr(position)
            axes.append(axis_attribute(names[expr.position], extents[expr.position]))
        elif expr == AffineConstantExpr(0) and values.shape(op.operands[maps.index(output)], op)[position] == 1:
            axes.append(axis_attribute(f"u{position}", 1))
        else:
            raise refusal(op, f"writes its output at {output}: te writes each element once, at its index")
    for dim, extent in enumerate(extents):
        if dim in exprs:
            continue
        if reduction[dim]:
            exprs[dim] = AffineDimExpr(len(axes))
            axes.append(axis_attribute(names[dim], extent, True))
        elif extent == 1:
            exprs[dim] = AffineConstantExpr(0)
        else:
            raise refusal(op, f"writes each element {extent} times: d{dim} is parallel, and not in the output's map")
    return IterationSpace(axes, [exprs[dim] for dim in range(len(extents))])


def _extents(op: LinalgStructuredOperation, maps: Sequence[AffineMap], values: TeValues) -> list[int]:
    """Return the extent of each iterator: the size of an operand's dimension that it indexes alone. Raises
    LoweringError for sizes that differ, KeyError for an iterator without such a dimension."""
    extents: dict[int, int] = {}
    for operand, map in zip(op.operands, maps, strict=True):
        for expr, size in zip(map.results, values.shape(operand, op), strict=True):
            if isinstance(expr, AffineDimExpr) and extents.setdefault(expr.position, size) != size:
                raise refusal(op, f"has the extents {extents[expr.position]} and {size} for d{expr.position}")
    return [extents[dim] for dim in range(maps[0].num_dims)]


def _names(op: LinalgStructuredOperation, rank: int) -> list[str]:
    """Return the names of the `rank` iterators: those in the table of named ops, for a named op without
    `indexing_maps`; else d0, d1 ..."""
    if isinstance(op, StructuredNamedOp) and op.indexing_maps is None:
        return op.row().dims
    return [f"d{dim}" for dim in range(rank)]


@dataclass
class _Conversion:
    op: LinalgStructuredOperation
    values: TeValues
    maps: Sequence[AffineMap]
    space: IterationSpace

    @property
    def _arguments(self) -> Sequence[SSAValue]:
        """The arguments of the op's body for its outputs."""
        return self.op.body.block.args[len(self.op.operands) - len(self.op.res) :]

    def convert(self, outputs: Sequence[int]) -> None:
        """Append the computes of the outputs at these positions among the op's results, and record their results as the
        op's."""
        if not any(axis.is_reduce for axis in self.space.axes):
            self._pointwise(outputs)
            return
        block = self.op.body.block
        is_joint = len(outputs) == len(self.op.res) and not are_separate(block, self._arguments)
        update = joint_update(block, self._arguments) if is_joint else None
        if update is None:
            self._reduction(outputs)
        else:
            self._joint(update)

    def _pointwise(self, outputs: Sequence[int]) -> None:
        last = self.op.body.block.last_op
        assert last is not None
        wanted = [last.operands[n] for n in outputs]
        body, scalars = self._body(self.op.operands, wanted)
        yields = [body.value(value, scalars) for value in wanted]
        splat = self._splat(body, yields)
        if splat is not None:
            self._map(outputs, [self.values.splat(splat, [axis.size for axis in self.space.axes], self.op)])
            return
        gathered = body.inputs[0] if len(body.inputs) == 1 and yields == [*body.block.args] else None
        if gathered is not None and isinstance(gathered.owner, te.GatherOp) and self._is_whole(body.reads[0]):
            self._map(outputs, [gathered])
            return
        new = body.compute(self.values.label(self.op), yields)
        self.values.add(new, self.op)
        self._map(outputs, new.results)

    def _is_whole(self, access: AccessAttr) -> bool:
        """Whether an access reads each element at the index of the result, so that a copy needs no compute."""
        return access == AccessAttr(AffineMap.identity(len(self.space.axes)))

    def _splat(self, body: ComputeBody, yields: Sequence[SSAValue]) -> Literal | None:
        """Return the literal that a fill yields; None if the body reads tensors or yields anything but one constant of
        a dtype of te, and for several outputs."""
        owner = yields[0].owner
        if body.inputs or len(yields) != 1 or not isinstance(owner, arith.ConstantOp):
            return None
        return owner.value if isinstance(owner.value, Literal) and row_of(yields[0].type) else None

    def _reduction(self, outputs: Sequence[int]) -> None:
        parts = combinings(self.op, self.op.body.block, self._arguments)
        inputs = self.op.operands[: len(self.op.operands) - len(self.op.res)]
        inits = [self.op.operands[len(inputs) + n] for n in outputs]
        starts = [self.values.splats.get(self.values.tensor(init, self.op)) for init in inits]
        chosen = [parts[n].starting(start) for n, start in zip(outputs, starts, strict=True)]
        conditions = [condition for part in chosen for condition, _ in part.conditions]
        body, scalars = self._body(inputs, [*(part.added for part in chosen), *conditions])
        yields = [self._added(body, part, scalars) for part in chosen]
        plain = [start == part.neutral for start, part in zip(starts, chosen, strict=True)]
        label = self.values.label(self.op, "" if all(plain) else ".partial")
        new = body.compute(label, yields, combination_of(chosen))
        self.values.add(new, self.op)
        results = [
            result if is_plain else self._with_init(result, part, init)
            for result, part, init, is_plain in zip(new.results, chosen, inits, plain, strict=True)
        ]
        self._map(outputs, results)

    def _joint(self, update: JointUpdate) -> None:
        """Append the compute of a reduction with a joint update, and for an argmax, an argmin or an extremum by a
        comparison a second one that combines its initial values. Raises LoweringError for another update whose initial
        values are no constants."""
        count = len(self.op.res)
        inputs, inits = self.op.operands[:-count], self.op.operands[-count:]
        kinds = enumerate(self.op.get_iterator_types())
        ties = arg_extremum(update, [n for n, kind in kinds if kind == IteratorTypeAttr.reduction()])
        starts = [self.values.splats.get(self.values.tensor(init, self.op)) for init in inits]
        extremum = update.identities(ties) if ties is not None else extremum_identity(update)
        identities = extremum or [start for start in starts if start is not None]
        if len(identities) != count:
            raise refusal(self.op, "combines its outputs jointly, from values that are no constants")
        body, scalars = self._body(inputs, update.added)
        yields = [body.value(value, scalars) for value in update.added]
        label = self.values.label(self.op, ".partial" if extremum else "")
        new = body.compute(label, yields, update.combination(identities, ties))
        self.values.add(new, self.op)
        self._map(range(count), self._from_starts(update, new.results, inits) if extremum else new.results)

    def _from_starts(
        self, update: JointUpdate, results: Sequence[SSAValue], inits: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        """Append the compute that updates the initial values by a reduction's results; return its results."""
        body = ComputeBody(self.values, self.space.spatial, self.op)
        identity = AffineMap.identity(len(body.axes))
        starts = [body.read(init, identity) for init in inits]
        combined = update.copy(starts, [body.read_te(r, AccessAttr(identity)) for r in results], body.add)
        new = body.compute(self.values.label(self.op), combined)
        self.values.add(new, self.op)
        return new.results

    def _added(self, body: ComputeBody, part: OutputUpdate, scalars: dict[SSAValue, SSAValue]) -> SSAValue:
        """Return the scalar that a reduction adds to an output, negated if the output's update subtracts it; the
        identity if a condition fails."""
        value = body.value(part.added, scalars)
        if part.negated and isinstance(value.type, AnyFloat):
            value = body.add(arith.NegfOp(value))
        elif part.negated:
            assert isinstance(value.type, IntegerType)
            value = body.add(arith.SubiOp(body.literal(IntegerAttr(0, value.type)), value))
        for condition, holds in part.conditions:
            sides = (value, body.literal(part.neutral))[:: 1 if holds else -1]
            value = body.add(SelectOp(body.value(condition, scalars), *sides))
        return value

    def _with_init(self, result: SSAValue, part: OutputUpdate, init: SSAValue) -> SSAValue:
        """Append the compute that combines the initial values `init` with a reduction's result; return its result."""
        body = ComputeBody(self.values, self.space.spatial, self.op)
        identity = AffineMap.identity(len(body.axes))
        combined = part.apply(body.read(init, identity), body.read_te(result, AccessAttr(identity)))
        return self.values.add(body.compute(self.values.label(self.op), [body.add(combined)]), self.op)

    def _body(
        self, operands: Sequence[SSAValue], wanted: Sequence[SSAValue]
    ) -> tuple[ComputeBody, dict[SSAValue, SSAValue]]:
        """Return a body with the ops on which the values `wanted` of the op's body depend, and their scalars by value;
        `operands` are those whose elements the body may read."""
        body = ComputeBody(self.values, self.space.axes, self.op)
        block = self.op.body.block
        for operand, argument, map in zip(operands, block.args, self.maps, strict=False):
            body.arguments[argument] = operand, self.space.rebase(map)
        scalars: dict[SSAValue, SSAValue] = {}
        copy_body(body, block, scalars, self.space.exprs, wanted)
        return body, scalars

    def _map(self, outputs: Sequence[int], results: Sequence[SSAValue]) -> None:
        for n, result in zip(outputs, results, strict=True):
            self.values.tensors[self.op.res[n]] = result
