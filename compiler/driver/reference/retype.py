"""`retyped`: a program in another float type; in float64 it computes the exact results of the reference."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import AnyFloat, FloatAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.pattern_rewriter import PatternRewriteWalker, TypeConversionPattern
from xdsl.rewriter import Rewriter

from compiler.dialects.dense import DenseAttr
from compiler.dialects.dense_elements import Dense
from compiler.dialects.numbers import array_of, dtype_of
from compiler.dialects.upstream.casts import ExtFOp, TruncFOp
from compiler.types.dtypes import row_of
from compiler.types.rounding import rounded


def floats_of(module: ModuleOp) -> set[AnyFloat]:
    """The float types of a module's values and elements."""
    floats: set[AnyFloat] = set()
    for op in module.walk():
        arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
        for value in (*op.results, *arguments):
            _collect(value.type, floats)
    return floats


def _collect(attribute: Attribute, floats: set[AnyFloat]) -> None:
    if isinstance(attribute, AnyFloat):
        floats.add(attribute)
    elif isinstance(attribute, ParametrizedAttribute):
        for parameter in attribute.parameters:
            _collect(parameter, floats)


def retyped(module: ModuleOp, to: AnyFloat) -> ModuleOp:
    """Copy a loop-level module with all floats of one type, without conversions between floats.

      %0 = arith.extf %a : f16 to f32    %1 = arith.mulf %0, %b : f32    // to f64
    ->
      %1 = arith.mulf %a, %b : f64
    """
    copy = module.clone()
    PatternRewriteWalker(_Retype(to), apply_recursively=False).rewrite_module(copy)
    for op in list(copy.walk()):
        if isinstance(op, ExtFOp | TruncFOp):
            Rewriter.replace_op(op, [], [op.operands[0]])
    return copy


class _Retype(TypeConversionPattern):
    """The conversion of all float types in types and attributes, constants included, to one type."""

    def __init__(self, to: AnyFloat) -> None:
        super().__init__(recursive=True)
        row = row_of(to)
        assert row is not None
        self.to, self.name = to, row.name

    def convert_type(self, typ: Attribute, /) -> Attribute | None:
        if isinstance(typ, DenseAttr) and isinstance(typ.type.element_type, AnyFloat):
            elements = array_of(typ.data).astype(dtype_of(self.to))
            type = TensorType(self.to, typ.type.get_shape())
            return DenseAttr(Dense(type, elements.reshape(-1).view(np.uint8).data, typ.data.name))
        if isinstance(typ, FloatAttr):
            return FloatAttr(rounded(typ.value.data, self.name), self.to)
        return self.to if isinstance(typ, AnyFloat) else None
