"""The kinds of parameters that a primitive has.

A parameter is a field of the primitive's op, an argument of its planning function and of its method of `Schedule`, and
an option of its pass. Its kind converts between these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from typing import Any, NamedTuple, Self, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f64,
    i64,
)
from xdsl.dialects.transform import AnyOpType
from xdsl.dialects.utils import split_dynamic_index_list
from xdsl.ir import Attribute, Operation, SSAValue, TypeAttribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import AnyAttr, AttrConstraint, operand_def, opt_operand_def, opt_prop_def, prop_def, var_operand_def

from compiler.dialects.sched import BlockType, LoopType, ParamType, SchedOp
from compiler.schedule.state import State
from compiler.support import validation
from compiler.support.errors import ScheduleError

Handle = SSAValue
"""A handle on a block, loop or parameter: a result of an op of the script."""
Size: TypeAlias = int | Handle
"""A constant, or the handle of a parameter."""
Value: TypeAlias = Any  # the value of a parameter: each kind knows its own type
MOST_RESULTS = 64
"""The most factors of a choice: a 64-bit extent has no more factors above 1."""


class Fields(NamedTuple):
    """The operands and properties that a parameter adds to its op."""

    operands: Sequence[SSAValue] = ()
    properties: Mapping[str, Attribute] = {}


@dataclass(frozen=True)
class Parameter:
    """A kind of parameter of a schedule primitive, with conversions between the argument of the `Schedule` method, the
    fields of the primitive's op, the argument of the planning function, and the pass's option.

    annotation: its Python type in the method. type: the type of the pass's option. option: the option's name if it
    differs from the parameter's. asked: whether the method has the parameter. planned: whether the planning function
    has it. optional: whether it has a default, which the op omits.
    """

    annotation: str
    type: Value = str
    option: str = ""
    optional: bool = False
    asked: bool = True
    planned: bool = True

    def called(self, option: str) -> Self:
        """The same kind with another name of the pass's option."""
        return replace(self, option=option)

    def definitions(self, name: str) -> dict[str, object]:
        """Return the irdl definitions of the op's fields for the parameter `name`, by field name. The base class has
        none; subclasses override it."""
        return {}

    def encoded(self, name: str, value: Value) -> Fields:
        """Encode an argument of the method as operands and properties of the op. The base class adds none; subclasses
        override it, and raise ScheduleError for an invalid argument."""
        return Fields()

    def decoded(self, op: SchedOp, name: str, state: State) -> Value:
        """Decode the argument of the planning function from the field `name` of the op, with the handles of `state`.
        The base class returns None; subclasses override it."""
        return None

    def text(self, op: SchedOp, name: str, names: Mapping[SSAValue, str]) -> str | None:
        """Print the argument as Python; `names` maps handles to variables. None for a default, which a call leaves out.
        The base class returns None; subclasses override it."""
        return None

    def fault(self, op: SchedOp, name: str) -> str:
        """Return a sentence about an invalid parameter `name` of an op; empty for a valid one. The base class returns
        an empty text; subclasses override it."""
        return ""


@dataclass(frozen=True)
class HandleParameter(Parameter):
    """One handle of the type `handles`, an `optional` one, or with `several` a list of them. A pass's option names a
    loop around its `block` or, with `anywhere`, any loop as `block.loop`; a `location` may also be ROOT or INLINE."""

    handles: TypeAttribute = field(default_factory=LoopType)
    several: bool = False
    anywhere: bool = False
    location: bool = False

    def definitions(self, name: str) -> dict[str, object]:
        define = var_operand_def if self.several else opt_operand_def if self.optional else operand_def
        return {name: define(self.handles)}

    def encoded(self, name: str, value: Value) -> Fields:
        handles = list(value) if self.several else [] if value is None and self.optional else [value]
        for handle in handles:
            if not isinstance(handle, SSAValue):
                raise ScheduleError(f"it takes handles, not a {type(handle).__name__}")
        return Fields(handles)

    def decoded(self, op: SchedOp, name: str, state: State) -> Value:
        value = getattr(op, name)
        if value is None:
            return None
        return [self._one(op, v, state) for v in value] if self.several else self._one(op, value, state)

    def _one(self, op: SchedOp, value: SSAValue, state: State) -> int | str:
        if isinstance(self.handles, LoopType):
            return state.loop(value, self.location)
        return state.block(value) if isinstance(self.handles, BlockType) else state.param(value)

    def text(self, op: SchedOp, name: str, names: Mapping[SSAValue, str]) -> str | None:
        value = getattr(op, name)
        if self.several:
            return ", ".join(names[v] for v in value)
        return None if value is None else names[value]

    def fault(self, op: SchedOp, name: str) -> str:
        if not self.several:
            return ""
        handles = list(getattr(op, name))
        if isinstance(self.handles, ParamType):
            return "" if handles else "there is nothing to multiply"
        if len(handles) < 2:
            return f"at least 2 loops are needed, got {len(handles)}"
        return "a loop is named twice" if len(set(handles)) != len(handles) else ""


Test: TypeAlias = tuple[Callable[[Value], bool], str]
"""A condition of values, and the refusal of a value that fails it, which is formatted into `{}`."""


@dataclass(frozen=True)
class AttributeParameter(Parameter):
    """A parameter that is a property of the op. constraint: irdl's, for the attribute. encode, decode: between the
    Python value and the attribute. tests: predicates of the value, each with a sentence for a value that fails.
    default: the value of an optional parameter."""

    constraint: AttrConstraint | type[Attribute] = StringAttr
    encode: Callable[[object], Attribute] = lambda value: _text(value)
    decode: Callable[[Value], Value] = lambda attribute: attribute.data
    tests: tuple[Test, ...] = ()
    default: Value = None

    def such_that(self, test: Callable[[Value], bool], sentence: str) -> Self:
        """The same kind with a further condition; `sentence`, with the value for its `{}`, refuses a value that fails
        it."""
        return replace(self, tests=(*self.tests, (test, sentence)))

    def or_else(self, default: Value) -> Self:
        """The same kind, optional: omitted from the op if it is None or has the default value."""
        return replace(self, optional=True, default=default)

    def definitions(self, name: str) -> dict[str, object]:
        return {name: (opt_prop_def if self.optional else prop_def)(self.constraint)}

    def encoded(self, name: str, value: Value) -> Fields:
        if self.optional and value is None:
            return Fields()
        for handle in value if isinstance(value, list | tuple) else (value,):
            if isinstance(handle, SSAValue):
                raise ScheduleError(
                    f"{name} is {_spoken(handle)}, expected {self.annotation}: only sizes and loops may be handles"
                )
        attribute = self.encode(value)
        is_default = self.optional and self.decode(attribute) == self.default
        return Fields() if is_default else Fields(properties={name: attribute})

    def value(self, op: Operation, name: str) -> Value:
        """Decode the value from an op: the default if the op omits it."""
        attribute = op.properties.get(name)
        return self.default if attribute is None else self.decode(attribute)

    def decoded(self, op: SchedOp, name: str, state: State) -> Value:
        return self.value(op, name)

    def text(self, op: SchedOp, name: str, names: Mapping[SSAValue, str]) -> str | None:
        attribute = op.properties.get(name)
        return None if attribute is None else _python(attribute)

    def fault(self, op: SchedOp, name: str) -> str:
        if self.optional and name not in op.properties:
            return ""
        value = self.value(op, name)
        return next((sentence.format(value) for test, sentence in self.tests if not test(value)), "")


@dataclass(frozen=True)
class SizesParameter(Parameter):
    """A list of constants and parameters, such as `[4, %t]`. With `inferred`, one size may be -1 (None in Python), and
    a single size n means [None, n]. `sentence`, with the sizes for its `{}`, refuses other sizes that are not positive.
    """

    inferred: bool = False
    sentence: str = ""

    def definitions(self, name: str) -> dict[str, object]:
        return {"params": var_operand_def(ParamType()), name: prop_def(DenseArrayBase.constr(i64))}

    def encoded(self, name: str, value: Value) -> Fields:
        sizes = [None, value] if self.inferred and isinstance(value, int | Handle) else _listed(name, value)
        sizes = [-1 if size is None and self.inferred else size for size in sizes]
        static, params = split_dynamic_index_list(
            [size if isinstance(size, SSAValue) else max(_int(size), DYNAMIC_INDEX + 1) for size in sizes],
            DYNAMIC_INDEX,
        )
        return Fields(params, {name: _int_array(static)})

    def length(self, sizes: Attribute) -> int:
        """The number of sizes in a property."""
        return len(_ints_of(sizes))

    def sizes(self, op: SchedOp, name: str) -> list[Size]:
        """The constants and parameters of an op, in their order."""
        params = list(getattr(op, "params"))  # noqa: B009 - the ops' fields are made of declarations
        return [params.pop(0) if n == DYNAMIC_INDEX else int(n) for n in _ints_of(op.properties[name])]

    def decoded(self, op: SchedOp, name: str, state: State) -> Value:
        sizes = self.sizes(op, name)
        return [None if size == -1 and self.inferred else state.size(size) for size in sizes]

    def text(self, op: SchedOp, name: str, names: Mapping[SSAValue, str]) -> str | None:
        sizes = [names[size] if isinstance(size, SSAValue) else str(size) for size in self.sizes(op, name)]
        if self.optional and not sizes:
            return None
        return f"[{', '.join('None' if size == '-1' else size for size in sizes)}]"

    def fault(self, op: SchedOp, name: str) -> str:
        static, parameter_count = _ints_of(op.properties[name]), len(getattr(op, "params"))  # noqa: B009
        if static.count(DYNAMIC_INDEX) != parameter_count:
            return f"{static.count(DYNAMIC_INDEX)} sizes are parameters, and {parameter_count} are given"
        sizes = [size for size in static if size != DYNAMIC_INDEX]
        too_small = [size for size in sizes if size < 1 and not (self.inferred and size == -1)]
        return self.sentence.format(sizes) if too_small or (self.inferred and sizes.count(-1) > 1) else ""


@dataclass(frozen=True)
class ResultsParameter(Parameter):
    """The parameter that is the number of the op's results."""

    def encoded(self, name: str, value: Value) -> Fields:
        validation.integer(name, value, 1, MOST_RESULTS, ScheduleError)
        return Fields()

    def decoded(self, op: SchedOp, name: str, state: State) -> int:
        return len(op.results)

    def text(self, op: SchedOp, name: str, names: Mapping[SSAValue, str]) -> str:
        return str(len(op.results))


@dataclass(frozen=True)
class RandomParameter(Parameter):
    """The source of random numbers, which only the planning function has."""

    def decoded(self, op: SchedOp, name: str, state: State) -> Value:
        return state.random


def _int(value: object) -> int:
    """Convert an integer to a Python int. Raises ScheduleError for any other value, and beyond 64 bits."""
    try:
        number = index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ScheduleError(f"{value!r} is not an integer") from None
    if not -(2**63) <= number < 2**63:
        raise ScheduleError(f"{number} does not fit into 64 bits")
    return number


def _float(value: object) -> FloatAttr:
    if not isinstance(value, int | float):
        raise ScheduleError(f"{value!r} is not a number")
    return FloatAttr(float(_int(value) if isinstance(value, int) else value), f64)


def _listed(name: str, values: object) -> list[Value]:
    if not isinstance(values, Iterable):
        raise ScheduleError(f"{name}={values!r} is not a list")
    return list(values)


def _int_array(values: object) -> DenseArrayBase:
    if not isinstance(values, Iterable):
        raise ScheduleError(f"{values!r} is not a list of integers")
    return DenseArrayBase.from_list(i64, [_int(value) for value in values])


def _ints_of(attribute: Attribute) -> list[int]:
    assert isinstance(attribute, DenseArrayBase)
    return [int(value) for value in attribute.get_values()]


def _text(value: object) -> StringAttr:
    if not isinstance(value, str):
        raise ScheduleError(f'{value!r} is not a name, such as "A"')
    return StringAttr(value)


def _any(value: object) -> Attribute:
    if isinstance(value, float):
        return FloatAttr(value, f64)
    if isinstance(value, Attribute | str):
        return value if isinstance(value, Attribute) else StringAttr(value)
    return IntegerAttr(_int(value), i64)


def _map(value: object) -> AffineMapAttr:
    if not isinstance(value, AffineMap):
        raise ScheduleError(f"{value!r} is not an affine map")
    return AffineMapAttr(value)


def _python(value: Attribute) -> str:
    match value:
        case StringAttr():
            return repr(value.data)
        case IntegerAttr() | FloatAttr():
            return str(value.value.data)
        case DenseArrayBase():
            return str([int(v) for v in value.get_values()])
        case ArrayAttr():
            return f"[{', '.join(map(_python, value))}]"
        case AffineMapAttr():
            dims = ", ".join(f"d{n}" for n in range(value.data.num_dims))
            expressions = ", ".join(str(e).replace("floordiv", "//").replace("mod", "%") for e in value.data.results)
            return f"lambda {dims}: ({expressions},)"
    return repr(str(value))


def _spoken(handle: SSAValue) -> str:
    """Describe a handle by its name in the script."""
    kind = "choice" if isinstance(handle.type, ParamType) else "handle"
    return f"the {kind} '{handle.name_hint}'" if handle.name_hint else f"a {kind}"


def word(noun: str, choices: Collection[str], also: Mapping[str, str] | None = None) -> AttributeParameter:
    """A parameter that is one of several words, else an unknown `noun`; `also` maps further spellings to them.

    >>> scope = strata.schedule.word("the scope", ("global", "shared"), {"smem": "shared"})
    >>> scope.encode("smem")
    StringAttr(data='shared')
    """
    allowed, spellings = ", ".join(choices), also or {}
    accepted = replace(TEXT, encode=lambda value: _text(spellings.get(str(value), value)))
    return accepted.such_that(lambda value: value in choices, f"unknown {noun} '{{}}' (there are {allowed})")


BLOCK = HandleParameter("Handle | str", handles=BlockType())
"""A block."""
LOOP = HandleParameter("Handle | str")
"""A loop; in a pass, one around its block."""
ANY_LOOP = HandleParameter("Handle | str", anywhere=True)
"""A loop; in a pass, a loop around any block."""
LOCATION = HandleParameter("Handle | str", anywhere=True, location=True)
"""A loop, or the location ROOT (outside all loops) or INLINE."""
LOOPS = HandleParameter("Handle | str", tuple[str, ...], several=True)
"""Several loops around the block of a pass, in a list."""
PARAM = HandleParameter("Handle", handles=ParamType())
"""The result of a choice."""
PARAMS = HandleParameter("Handle", handles=ParamType(), several=True)
"""Several results of choices."""
TEXT = AttributeParameter("str")
"""A word or a name."""
INT = AttributeParameter(
    "int",
    int,
    constraint=IntegerAttr.constr(i64),
    encode=lambda value: IntegerAttr(_int(value), i64),
    decode=lambda attribute: int(attribute.value.data),
)
"""A 64-bit integer."""
INTS = AttributeParameter(
    "Sequence[int]", tuple[int, ...], constraint=DenseArrayBase.constr(i64), encode=_int_array, decode=_ints_of
)
"""Several integers."""
FLOATS = AttributeParameter(
    "Sequence[float]",
    constraint=ArrayAttr[FloatAttr],
    encode=lambda values: ArrayAttr([_float(value) for value in _listed("probabilities", values)]),
    decode=lambda attribute: [element.value.data for element in attribute],
)
"""Several floats."""
MAP = AttributeParameter("AffineMap", constraint=AffineMapAttr, encode=_map)
"""An affine map of indices; in a pass its text, such as "(i, j) -> (j, i)"."""
ANY = AttributeParameter(
    "Attribute | int | float | str", int | str, constraint=AnyAttr(), encode=_any, decode=lambda attribute: attribute
)
"""Any attribute, or a number or a text as one."""
SIZES = SizesParameter("Sequence[Size]", tuple[int, ...], sentence="the tiles {} are not all positive")
"""Positive sizes, constants or results of choices."""
FACTORS = SizesParameter(
    "Sequence[Size | None] | Size",
    tuple[int, ...],
    inferred=True,
    sentence="the factors {} are not positive with at most one -1, which is inferred",
)
"""Factors of a loop, at most one of them None, which is inferred."""
RESULTS = ResultsParameter("int")
"""The number of the op's results."""
FUNCTION = HandleParameter("Handle", handles=AnyOpType(), asked=False, planned=False)
"""The function, which only the op takes."""
RANDOM = RandomParameter("Random", asked=False)
"""The source of random numbers, which only the planning function takes."""
