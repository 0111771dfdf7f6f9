"""`bound`: the static function that one with sizes is at given sizes; it is the meaning of sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstraintExpr, AffineExpr, AffineMap, AffineSet
from xdsl.rewriter import Rewriter

from compiler.dialects.access import AccessAttr, axis_attribute
from compiler.dialects.dominance import verify_module
from compiler.dialects.functions import functions
from compiler.dialects.size_values import checked_values
from compiler.dialects.sizes import DIMS, SIZES, extents_of, sizes_of
from compiler.dialects.te import ComputeOp, GatherOp, IndexOp
from compiler.support.errors import InputError, TeError
from compiler.support.text import unknown
from compiler.te.function import Function
from compiler.te.index import Size


def bound(f: Function | ModuleOp, values: Mapping[Size | str, int]) -> ModuleOp:
    """Return the module of a te function, or a copy of a module, with values for the sizes of its functions: a program
    without sizes, which everything takes.

    `values` are by size or by name. Raises InputError for a size without a value, an unknown name, a value outside the
    range or that `where` excludes, and a module without sizes; TeError for another object.

    >>> S = te.size("S", 1, 512)
    >>> X = te.placeholder((S, 768), name="X")
    >>> f = te.function("f", [X], te.nn.exp(X, name="Y"))
    >>> strata.interpret.evaluate(te.bound(f, {S: 2}), [np.zeros((2, 768), np.float32)])[0].shape
    (2, 768)
    """
    module = f.module if isinstance(f, Function) else f
    if not isinstance(module, ModuleOp):
        raise TeError(f"bound takes a te function or a module, not a {type(f).__name__}")
    named = {key.name if isinstance(key, Size) else key: value for key, value in values.items()}
    copy = module.clone()
    if not bind(copy, named):
        raise InputError("the module has no sizes to give values to")
    verify_module(copy)
    return copy


def bind(module: ModuleOp, values: Mapping[str, int]) -> bool:
    """Give values, by name, to the sizes of all functions of a module, in place; return whether a function has sizes.
    Raises InputError as `bound`, before anything changes."""
    sizes = {function: sizes_of(function) for function in functions(module)}
    names = {function: declared.names for function, declared in sizes.items() if declared is not None}
    known = {name for own in names.values() for name in own}
    for name in values if names else ():
        if name not in known:
            raise InputError(unknown("size", str(name), sorted(known)))
    own_values = {f: checked_values(f, {n: v for n, v in values.items() if n in own}) for f, own in names.items()}
    for function, own in own_values.items():
        _Binding(function, own).apply()
    return bool(names)


class _Binding:
    """The values of a function's sizes, put into its types, axes, accesses and bodies."""

    def __init__(self, function: FuncOp, values: Mapping[str, int]) -> None:
        sizes = sizes_of(function)
        assert sizes is not None
        self.function, self.sizes, self.values = function, sizes, values
        self.symbols = [AffineExpr.constant(values[name]) for name in sizes.names]

    def apply(self) -> None:
        """Rewrite the function in place."""
        block = self.function.body.block
        values = [*block.args, *(value for op in block.ops for value in op.results)]
        values = [value for value in values if isinstance(value.type, TensorType)]
        types = [self._type(value) for value in values]
        for op in list(block.ops):
            if isinstance(op, ComputeOp | GatherOp):
                self._bind(op)
        for value, type in zip(values, types, strict=True):
            if value.type != type:
                Rewriter.replace_value_with_new_type(value, type)
        assert block.last_op is not None
        outputs = [value.type for value in block.last_op.operands]
        self.function.function_type = FunctionType.from_lists(list(block.arg_types), outputs)
        del self.function.attributes[SIZES]
        self._drop_dims()

    def _type(self, value: SSAValue) -> TensorType:
        assert isinstance(value.type, TensorType)
        numbers = [self.values[name] for name in self.sizes.names]
        extents = [extent.eval((), numbers) for extent in extents_of(value, self.sizes)]
        return TensorType(value.type.get_element_type(), extents)

    def _drop_dims(self) -> None:
        stated = self.function.arg_attrs
        if stated is not None:
            left = [{k: v for k, v in row.data.items() if k != DIMS} for row in stated.data]
            self.function.arg_attrs = ArrayAttr(map(DictionaryAttr, left)) if any(left) else None

    def _bind(self, op: ComputeOp | GatherOp) -> None:
        numbers = [self.values[name] for name in self.sizes.names]
        op.axes = ArrayAttr(axis_attribute(a.label, a.end.eval((), numbers), a.is_reduce) for a in op.axes)
        op.reads = ArrayAttr(map(self._access, op.reads))
        op.sizes = None
        for region in op.regions:
            for inner in [i for block in region.blocks for i in block.ops if isinstance(i, IndexOp)]:
                if inner.label.data in self.values:
                    value = IntegerAttr(self.values[inner.label.data], IndexType())
                    Rewriter.replace_op(inner, ConstantOp(value))

    def _access(self, access: AccessAttr) -> AccessAttr:
        map, condition = access.affine_map, access.condition
        dims = [AffineExpr.dimension(d) for d in range(map.num_dims)]
        new_map = AffineMap(map.num_dims, 0, self._over(map.results, dims))
        if condition is None:
            return AccessAttr(new_map)
        constraints = [AffineConstraintExpr(c.kind, *self._over((c.lhs, c.rhs), dims)) for c in condition.constraints]
        return AccessAttr(new_map, AffineSet(map.num_dims, 0, tuple(constraints)), access.otherwise)

    def _over(self, expressions: Sequence[AffineExpr], dims: Sequence[AffineExpr]) -> tuple[AffineExpr, ...]:
        return tuple(e.replace_dims_and_symbols(dims, self.symbols) for e in expressions)
