"""A program in other floats: in float64 it is the reference of itself in narrower ones."""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, DictionaryAttr, FloatAttr, ModuleOp
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.rewriter import Rewriter

from compiler.dialects.upstream.arith import ExtFOp, TruncFOp


def floats_of(module: ModuleOp) -> set[AnyFloat]:
    """The types of floats of which a module has values or elements."""
    found: set[AnyFloat] = set()
    for value in _values(module):
        _collect(value.type, found)
    return found


def retyped(module: ModuleOp, to: AnyFloat) -> ModuleOp:
    """A copy of a loop-level module in which every float is of one type; conversions between floats are gone.

      %0 = arith.extf %a : f16 to f32    %1 = arith.mulf %0, %b : f32    // to f64
    ->
      %1 = arith.mulf %a, %b : f64
    """
    copy = module.clone()
    for op in copy.walk():
        op.attributes = {name: _retyped(attribute, to) for name, attribute in op.attributes.items()}
        op.properties = {name: _retyped(attribute, to) for name, attribute in op.properties.items()}
    for value in _values(copy):
        type = _retyped(value.type, to)
        if type != value.type:
            Rewriter.replace_value_with_new_type(value, type)
    for op in list(copy.walk()):
        if isinstance(op, ExtFOp | TruncFOp):
            _skip(op)
    return copy


def _values(module: ModuleOp) -> list[SSAValue]:
    results = [result for op in module.walk() for result in op.results]
    blocks = [block for op in module.walk() for region in op.regions for block in region.blocks]
    return results + [argument for block in blocks for argument in block.args]


def _collect(attribute: Attribute, found: set[AnyFloat]) -> None:
    if isinstance(attribute, AnyFloat):
        found.add(attribute)
    elif isinstance(attribute, ParametrizedAttribute):
        for parameter in attribute.parameters:
            _collect(parameter, found)


def _retyped(attribute: Attribute, to: AnyFloat) -> Attribute:
    if isinstance(attribute, AnyFloat):
        return to
    if isinstance(attribute, FloatAttr):
        return FloatAttr(attribute.value.data, to)
    if isinstance(attribute, ArrayAttr):
        return ArrayAttr([_retyped(item, to) for item in attribute.data])
    if isinstance(attribute, DictionaryAttr):
        return DictionaryAttr({name: _retyped(item, to) for name, item in attribute.data.items()})
    if isinstance(attribute, ParametrizedAttribute):
        return type(attribute).new([_retyped(parameter, to) for parameter in attribute.parameters])
    return attribute


def _skip(conversion: Operation) -> None:
    """Take a conversion's operand for its result."""
    conversion.results[0].replace_all_uses_with(conversion.operands[0])
    conversion.detach()
    conversion.erase()
