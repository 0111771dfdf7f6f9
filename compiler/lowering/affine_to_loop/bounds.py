"""The bounds of loops: the first value as a form over outer loops, a constant step and extent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import affine, scf
from xdsl.dialects.builtin import DenseIntElementsAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineMap

from compiler.affine.linear import Linear
from compiler.lowering.affine_to_loop.forms import ValueForms
from compiler.lowering.affine_to_loop.memory import ForLike, name_of
from compiler.support.errors import LoweringError


@dataclass(frozen=True)
class LoopBounds:
    """The values `first + step * n` of a loop variable, for 0 <= n < extent; the extent may be zero."""

    first: Linear
    step: int
    extent: int


@dataclass(frozen=True)
class _Limits:
    """The stated bounds of one loop: `lower`, `upper` (exclusive) and `step`, each None if it is not affine, or is a
    minimum or maximum that intervals do not decide. `operands` are the values that they depend on."""

    lower: Linear | None
    upper: Linear | None
    step: Linear | int | None
    operands: Sequence[SSAValue]


def bounds_of(
    op: ForLike | affine.ParallelOp | scf.ParallelOp, forms: ValueForms, names: Mapping[int, str]
) -> list[LoopBounds]:
    """Return the bounds of each variable of an op. Raises LoweringError for an extent or a step that is not constant,
    and a step below 1; `names` are those of the loop variables in the message, by number."""
    match op:
        case affine.ForOp():
            lower = forms.extremum(forms.results(op.lowerBoundMap.data, op.lowerBoundOperands), True)
            upper = forms.extremum(forms.results(op.upperBoundMap.data, op.upperBoundOperands), False)
            operands = [*op.lowerBoundOperands, *op.upperBoundOperands]
            stated = [_Limits(lower, upper, op.step.value.data, operands)]
        case scf.ForOp():
            stated = [_between(forms, op.lb, op.ub, op.step)]
        case scf.ParallelOp():
            triples = zip(op.lowerBound, op.upperBound, op.step, strict=True)
            stated = [_between(forms, *triple) for triple in triples]
        case affine.ParallelOp():
            stated = _of_box(op, forms)
    return [_checked(op, limits, forms, names) for limits in stated]


def _between(forms: ValueForms, lower: SSAValue, upper: SSAValue, step: SSAValue) -> _Limits:
    return _Limits(forms.form(lower), forms.form(upper), forms.form(step), [lower, upper, step])


def _of_box(op: affine.ParallelOp, forms: ValueForms) -> list[_Limits]:
    lower_map, upper_map = op.lowerBoundsMap.data, op.upperBoundsMap.data
    inputs = lower_map.num_dims + lower_map.num_symbols
    operands = list(op.map_operands)
    lowers = _grouped(forms, lower_map, op.lowerBoundsGroups, operands[:inputs], True)
    uppers = _grouped(forms, upper_map, op.upperBoundsGroups, operands[inputs:], False)
    steps = [step.value.data for step in op.steps]
    return [_Limits(*limits, operands) for limits in zip(lowers, uppers, steps, strict=True)]


def _grouped(
    forms: ValueForms, map: AffineMap, groups: DenseIntElementsAttr, operands: Sequence[SSAValue], largest: bool
) -> list[Linear | None]:
    """Return the bound of each variable of a box: the largest (or, if not `largest`, the least) of its group of the
    map's results; None if intervals do not decide it, or it is not affine."""
    results, bounds = forms.results(map, operands), list[Linear | None]()
    for size in groups.get_values():
        bounds.append(forms.extremum(results[: int(size)], largest))
        results = results[int(size) :]
    return bounds


def _checked(op: Operation, limits: _Limits, forms: ValueForms, names: Mapping[int, str]) -> LoopBounds:
    step = limits.step.constant if isinstance(limits.step, Linear) and limits.step.is_constant else limits.step
    if limits.lower is not None and limits.upper is not None and isinstance(step, int):
        if step < 1:
            raise LoweringError(f"the step of '{op.name}' is {step}; steps are at least 1").at(op)
        distance = limits.upper - limits.lower
        if distance.is_constant:
            return LoopBounds(limits.lower, step, max(0, -(-distance.constant // step)))
    causes = ", ".join(dict.fromkeys(_causes(limits.operands, forms, names)))
    raise LoweringError(f"the bound depends on {causes}; the number of iterations of a loop is constant").at(op)


def _causes(operands: Sequence[SSAValue], forms: ValueForms, names: Mapping[int, str]) -> list[str]:
    """The names of the loop variables, and of the values that are not affine, in the operands of bounds."""
    causes: list[str] = []
    for operand in operands:
        form = forms.form(operand)
        causes += [name_of(operand)] if form is None else [names[number] for number in sorted(form.variables())]
    return causes
