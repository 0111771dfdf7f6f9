"""`function`: a verified te module of computes and their inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.dense import DenseAttr
from compiler.dialects.dominance import verify_module
from compiler.dialects.sizes import DIMS, SIZES, dims_attribute
from compiler.dialects.te import ConstantOp
from compiler.program.names import Names, spelled, spellings
from compiler.support import display
from compiler.support.errors import TeError
from compiler.support.spans import of_caller
from compiler.te.emit import SizeNumbers, emit_compute, emit_gather
from compiler.te.index import Condition, check_name, numbered
from compiler.te.sizes import declared, expression, sizes_in
from compiler.te.tensor import Constant, Gather, Source, Tensor, shown
from compiler.types.dtypes import TYPES


@dataclass(frozen=True)
class Function:
    """A te function: its module at the te level, and its input and output tensors in order.

    >>> A = te.placeholder((4, 8), name="A")
    >>> f = te.function("f", [A], te.nn.sum(A, axis=1, name="B"))
    >>> f
    <Function f(A: f32[4, 8]) -> B: f32[4]>
    >>> f.inputs, f.outputs
    ((<Tensor A: f32[4, 8]>,), (<Tensor B: f32[4]>,))
    """

    name: str
    module: ModuleOp
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    def __str__(self) -> str:
        return str(self.module)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(shown, tensors)) for tensors in (self.inputs, self.outputs))
        return display.line(f"<Function {self.name}({inputs}) -> {outputs}>")


def function(
    name: str, inputs: Sequence[Tensor], outputs: Sequence[Tensor] | Tensor, where: Sequence[Condition] = ()
) -> Function:
    """Build the function that computes outputs from inputs.

    Computes and constants are in topological order; of equal names the second gets the suffix _1, and so on. `where`
    has conditions over sizes, such as `pos + T <= 2048`, that hold in all calls. Raises TeError for an output that
    depends on a placeholder outside `inputs`, for an input that is no placeholder, for two inputs of one name, for an
    input or output that is no tensor, without outputs, for two sizes of one name, an axis with the name of a size, and
    relations that none satisfy, and, with sizes, for a read out of bounds.

    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> te.function("f", [A, B], te.nn.add(A, B, name="C"))
    <Function f(A: f32[4], B: f32[4]) -> C: f32[4]>
    >>> te.function("f", [A], te.nn.add(A, B, name="C"))
    Traceback (most recent call last):
        ...
    compiler.support.errors.TeError: the function 'f' uses the placeholder 'B', which is not among its inputs
    """
    title = spelled(check_name("a function", name))
    outs = (outputs,) if isinstance(outputs, Tensor) else _tensors(name, "outputs", outputs)
    inputs = _tensors(name, "inputs", inputs)
    if not outs:
        raise TeError(f"the function '{name}' has no outputs")
    _check_inputs(name, inputs)
    block = Block(arg_types=[_type(tensor) for tensor in inputs])
    values: dict[tuple[object, int], SSAValue] = {}
    names = spellings([tensor.name for tensor in inputs])
    for tensor, argument, hint in zip(inputs, block.args, names, strict=True):
        argument.name_hint = hint
        values[_key(tensor)] = argument
    labels = Names(names, separator="_")
    sizes = _sizes(name, inputs, _ordered(outs), where)
    for op in _ordered(outs):
        label = labels.fresh(spelled(op.name))
        emitted = _emitted(op, label, lambda tensor: _find(name, tensor, values), sizes)
        block.add_op(emitted)
        for position, value in enumerate(emitted.results):
            value.name_hint = label if len(emitted.results) == 1 else f"{label}.{position}"
            values[(op, position)] = value
    returned = [_find(name, tensor, values) for tensor in outs]
    block.add_op(end := ReturnOp(*returned))
    type = FunctionType.from_lists([_type(t) for t in inputs], [_type(t) for t in outs])
    function = FuncOp(title, type, Region(block), arg_attrs=_dims(inputs, sizes))
    if sizes.attribute is not None:
        function.attributes[SIZES] = sizes.attribute
    function.location = end.location = of_caller()
    module = ModuleOp([function])
    try:
        verify_module(module)
    except VerifyException as error:
        if sizes.attribute is None:
            raise
        raise TeError(f"in function '{name}': {error}") from error
    return Function(title, module, tuple(inputs), outs)


def _sizes(name: str, inputs: Sequence[Tensor], ops: Sequence[Source], where: Sequence[Condition]) -> SizeNumbers:
    """The sizes of a function and of its relations, in order of occurrence. Raises TeError for invalid ones."""
    if not isinstance(where, tuple | list):
        raise TeError(f"the relations of function '{name}' are {where!r}, expected a list of conditions")
    conditions = [condition for condition in where if isinstance(condition, Condition)]
    own = dict.fromkeys(size for op in ops for size in op.sizes)
    sizes = list(dict.fromkeys([*sizes_in(dim for t in inputs for dim in t.dims), *own, *sizes_in(conditions)]))
    names = {size.name for size in sizes}
    for op in ops:
        clash = [label for label in ([] if isinstance(op, Constant) else op.labels) if label in names]
        if clash:
            raise TeError(f"in function '{name}': the axis '{clash[0]}' of '{op.name}' has the name of a size")
    try:
        return SizeNumbers(sizes, declared(name, sizes, where))
    except VerifyException as error:
        raise TeError(f"in function '{name}': {error}") from error


def _dims(inputs: Sequence[Tensor], sizes: SizeNumbers) -> ArrayAttr[DictionaryAttr] | None:
    """The attributes of arguments: te.dims for those with sizes; None without sizes in any shape."""
    if sizes.attribute is None or not sizes_in(dim for tensor in inputs for dim in tensor.dims):
        return None
    order, declaration = numbered((), sizes.sizes), sizes.attribute

    def attributes(tensor: Tensor) -> DictionaryAttr:
        if not sizes_in(tensor.dims):
            return DictionaryAttr({})
        return DictionaryAttr({DIMS: dims_attribute([expression(dim, order) for dim in tensor.dims], declaration)})

    return ArrayAttr(map(attributes, inputs))


def _emitted(op: Source, label: str, value_of: Callable[[Tensor], SSAValue], sizes: SizeNumbers) -> Operation:
    if isinstance(op, Constant):
        return ConstantOp(DenseAttr(op.value))
    emitted: Operation = (
        emit_gather(op, label, value_of, sizes) if isinstance(op, Gather) else emit_compute(op, label, value_of, sizes)
    )
    for inner in emitted.walk():
        inner.location = op.location
    return emitted


def _tensors(name: str, what: str, tensors: object) -> tuple[Tensor, ...]:
    if not isinstance(tensors, tuple | list):
        raise TeError(f"the {what} of function '{name}' are {tensors!r}, expected a list of tensors")
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            raise TeError(f"in function '{name}': {tensor!r} is not a tensor")
    return tuple(tensors)


def _check_inputs(name: str, inputs: Sequence[Tensor]) -> None:
    names = Counter(tensor.name for tensor in inputs)
    for tensor in inputs:
        if tensor.source is not None:
            kind = "a constant" if isinstance(tensor.source, Constant) else "computed"
            raise TeError(f"the input '{tensor.name}' of function '{name}' is {kind}, not a placeholder")
        if names[tensor.name] > 1:
            raise TeError(f"two inputs of function '{name}' are named '{tensor.name}'")


def _key(tensor: Tensor) -> tuple[object, int]:
    return (tensor if tensor.source is None else tensor.source, tensor.position)


def _find(name: str, tensor: Tensor, values: dict[tuple[object, int], SSAValue]) -> SSAValue:
    value = values.get(_key(tensor))
    if value is None:
        raise TeError(f"the function '{name}' uses the placeholder '{tensor.name}', which is not among its inputs")
    return value


def _ordered(outputs: Sequence[Tensor]) -> list[Source]:
    """Return the computes, gathers and constants that the outputs depend on, each once, operands first."""
    ordered: dict[Source, None] = {}
    stack = [(t.source, False) for t in reversed(outputs) if t.source is not None]
    while stack:
        op, is_visited = stack.pop()
        if op in ordered:
            continue
        if is_visited:
            ordered[op] = None
            continue
        stack.append((op, True))
        stack += [(t.source, False) for t in reversed(op.sources()) if t.source is not None]
    return list(ordered)


def _type(tensor: Tensor) -> TensorType:
    return TensorType(TYPES[tensor.dtype], tensor.capacities)
