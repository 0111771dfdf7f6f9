"""A function of the low level as a C function: names of the program, arrays with shapes, loops as loops."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, func, memref, scf, vector
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, NoneAttr, VectorType, i1
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from compiler.analysis.index_forms import Ranges
from compiler.dialects.functions import SLOT_ALIGNMENT
from compiler.dialects.upstream.casts import element_of
from compiler.dialects.upstream.llvm import is_ldexp
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.vector import ScatterOp
from compiler.targets.c.language import C
from compiler.targets.c.names import is_reserved
from compiler.targets.c.vectors import VectorStatements
from compiler.targets.clike.expressions import CExpr, bare, function_call
from compiler.targets.clike.operations import DIVISIONS, expression
from compiler.targets.clike.statements import SourceWriter
from compiler.types.elements import element_bytes

ON_STACK = 16 << 10
"""The most bytes of a temporary on the stack; larger ones are allocated on the heap."""
Shape = tuple[int, ...]


@dataclass(frozen=True)
class CParameter:
    """A parameter of the function: the block argument, its name and declaration, and whether an op writes it; if not,
    it is const."""

    argument: BlockArgument
    name: str
    declaration: str
    is_written: bool


class CWriter(VectorStatements):
    """Writer of a function; `constants` has the array names of constant arguments by position, of globals by name."""

    changes = (*SourceWriter.changes, scf.ParallelOp, vector.MaskedStoreOp, ScatterOp, memref.CopyOp)

    def __init__(self, function: FuncOp, language: C, constants: Mapping[str | int, str]) -> None:
        super().__init__(language)
        self.language: C = language
        self.function = function
        self._constants = constants
        self.taken.update(constants.values())
        self._heap: list[list[str]] = []
        self._ranges = Ranges()
        stored = _stored(function)
        for n, name in constants.items():
            if isinstance(n, int):
                self.texts[function.args[n]] = CExpr(name)
        self.parameters = [self._parameter(a, a in stored) for a in function.args if a.index not in constants]

    def body(self) -> str:
        """Write the ops of the function and return the lines of its body as one text. Raises LoweringError for an op
        that C lacks."""
        self._scope(self.function.body.block)
        return "\n".join(self.lines)

    def _parameter(self, argument: BlockArgument, is_written: bool) -> CParameter:
        if not isinstance(argument.type, MemRefType):
            raise self.language.lacks(f"the argument '{argument.name_hint}' of type {argument.type}")
        name, shape = self.name(argument), self.shape(argument.type)
        self.texts[argument] = CExpr(name)
        first, *inner = shape or (1,)
        extents = f"[restrict static {max(1, first)}]{_row(inner)}"
        const = "" if is_written else "const "
        declaration = f"{const}{self.language.spelled(argument.type.element_type)} {name}{extents}"
        return CParameter(argument, name, declaration, is_written)

    def shape(self, type_: Attribute) -> Shape:
        """Return the extents of a row-major buffer. Raises LoweringError for a dynamic shape, a layout, and a type that
        is no memref."""
        is_plain = isinstance(type_, MemRefType) and isinstance(type_.layout, NoneAttr)
        if not is_plain or any(extent < 0 for extent in type_.get_shape()):  # type: ignore[attr-defined]
            raise self.language.lacks(f"the buffer type {type_}")
        return tuple(type_.get_shape())  # type: ignore[attr-defined]

    def is_reserved(self, stem: str) -> bool:
        """Return whether a name must not be a variable's: a keyword, a helper's name, or another reserved name of the
        text."""
        return is_reserved(stem)

    def name(self, value: SSAValue, default: str = "v") -> str:
        """Return an unused name for a value; the default stem is `holds` for a condition and `mask` for a vector of
        conditions."""
        if element_of(value.type) == i1:
            default = "mask" if isinstance(value.type, VectorType) else "holds"
        return super().name(value, default)

    def type_of(self, value: SSAValue) -> str:
        """Spell the type of a value. Raises LoweringError for a buffer."""
        if isinstance(value.type, MemRefType):
            raise self.language.lacks("a buffer that is carried or chosen")
        return self.language.spelled(value.type)

    def declared(self, value: SSAValue, code: str) -> None:
        """Declare a const variable for a value, initialised by `code` without its outer parentheses."""
        super().declared(value, bare(code))

    def element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return the expression of an element of an array. Raises LoweringError for a buffer that is not row-major."""
        self.shape(buffer.type)
        texts = [self.text(index).code for index in indices] or ["0"]
        return self.text(buffer).code + "".join(f"[{code}]" for code in texts)

    # --- statements ---------------------------------------------------------------------------------------------------

    def op(self, op: Operation) -> None:
        """Write an op. Raises LoweringError for one that C lacks."""
        match op:
            case func.ReturnOp() if not op.arguments:
                pass
            case scf.YieldOp() | scf.ReduceOp() | memref.DeallocOp():
                pass
            case scf.ForOp():
                self.loop(op)
            case scf.IfOp():
                self.branch(op)
            case scf.ParallelOp():
                self._parallel(op)
            case memref.AllocOp() | memref.AllocaOp():
                self._buffer(op)
            case memref.GetGlobalOp():
                self.texts[op.memref] = CExpr(self._constants[op.name_.string_value()])
            case memref.LoadOp():
                self._load(op)
            case memref.StoreOp():
                self.store(op, self.element(op.memref, op.indices))
            case memref.CopyOp():
                size = f"sizeof({self.language.spelled(op.source.type.element_type)})"  # type: ignore[attr-defined]
                bytes_ = f"{prod(self.shape(op.source.type))} * {size}"
                self.line(f"memcpy({self.text(op.destination).code}, {self.text(op.source).code}, {bytes_});")
            case PrefetchOp():
                write, locality = int(bool(op.isWrite.value.data)), op.localityHint.value.data
                self.line(f"__builtin_prefetch(&{self.element(op.memref, op.indices)}, {write}, {locality});")
            case arith.ConstantOp() if not isinstance(op.result.type, VectorType):
                self.texts[op.result] = self.literal(self.language.literal(op.value))
            case _ if is_ldexp(op) and not isinstance(op.results[0].type, VectorType):
                function = self.language.function("ldexp", op.results[0].type)
                self.value(op, function_call(function, list(map(self.text, op.operands))))
            case arith.BitcastOp() if not isinstance(op.result.type, VectorType):
                self._bits(op)
            case _ if not self.vector_op(op):
                self._scalar(op)

    def _scalar(self, op: Operation) -> None:
        if not op.operands or len(op.results) != 1 or op.regions:
            raise self.language.lacks(f"'{op.name}'")
        texts = [self.text(value) for value in op.operands]
        is_wide = any(isinstance(v.type, IndexType) and self._ranges.of(v)[0] < 0 for v in op.operands)
        self.value(op, expression(op, texts, self.language, [is_wide] * len(texts), is_wide))

    def value(self, op: Operation, text: CExpr) -> None:
        """Bind an op's result to the expression `text`, written in place or as a variable; always to a variable for a
        quotient or remainder of type index with several uses."""
        if type(op) in DIVISIONS and isinstance(op.results[0].type, IndexType) and len(list(op.results[0].uses)) > 1:
            self.declared(op.results[0], text.code)
        else:
            super().value(op, text)

    def _load(self, op: memref.LoadOp) -> None:
        code = self.element(op.memref, op.indices)
        if isinstance(op.res.type, IndexType):
            self.declared(op.res, code)
        else:
            self.value(op, CExpr(code))

    def _bits(self, op: arith.BitcastOp) -> None:
        source = self.type_of(op.input)
        name = self.variable(op.result)
        self.line(f"memcpy(&{name}, &({source}){{{self.text(op.input).code}}}, sizeof {name});")

    # --- buffers ------------------------------------------------------------------------------------------------------

    def _buffer(self, op: memref.AllocOp | memref.AllocaOp) -> None:
        """Write a temporary at its allocation: a variable, or heap memory that is freed at the end of the scope."""
        type_ = op.memref.type
        shape = self.shape(type_)
        assert isinstance(type_, MemRefType)
        requested_alignment = op.alignment.value.data if isinstance(op.alignment, IntegerAttr) else 1
        alignment, element = max(SLOT_ALIGNMENT, requested_alignment), self.language.spelled(type_.element_type)
        name = self.name(op.memref, "buffer")
        self.texts[op.memref] = CExpr(name)
        first_extent, *inner = shape or (1,)
        size = max(1, prod(shape)) * element_bytes(type_.element_type)
        if size <= ON_STACK:
            self.line(f"_Alignas({alignment}) {element} {name}[{max(1, first_extent)}]{_row(inner)};")
            return
        pointer = f"{element} (*{name}){_row(inner)}" if inner else f"{element} *{name}"
        self.line(f"{pointer} = aligned_alloc({alignment}, {-(-size // alignment) * alignment});")
        self.line(f"if (!{name}) abort();")
        self._heap[-1].append(name)

    def _scope(self, block: Block, names: Sequence[str] = ()) -> None:
        """Write the ops of a block, assign its yielded values to `names`, and free its heap memory."""
        self._heap.append([])
        self.ops(block)
        self.yielded(block, names)
        for name in reversed(self._heap.pop()):
            self.line(f"free({name});")

    def nested(self, body: Block, names: Sequence[str] = ()) -> None:
        """Write a body one level deeper; its yielded values are assigned to the variables `names`, in order; heap
        memory that it allocated is freed at its end."""
        self.depth += 1
        self._scope(body, names)
        self.depth -= 1

    def assigned(self, values: Sequence[SSAValue], names: Sequence[str], new_values: Sequence[str]) -> None:
        """Assign the expressions `new_values` of `values` to the variables `names`, through copies if one reads a
        variable that is assigned before it; `x = x + y` becomes `x += y`, and `x = x` nothing."""
        for position, code in enumerate(new_values):
            if any(re.search(rf"\b{re.escape(name)}\b", code) for name in names[:position]):
                super().assigned(values, names, new_values)
                return
        for value, name, code in zip(values, names, new_values, strict=True):
            addend = self._addend(value, name)
            if addend is not None:
                self.line(f"{name} += {addend.code};")
            elif name != code:
                self.line(f"{name} = {code};")

    def _addend(self, value: SSAValue, name: str) -> CExpr | None:
        """Return `y` if the new value of the variable `name` is `name + y`; None for any other new value, for one that
        has a variable, and for f16."""
        owner = value.owner
        is_exact = isinstance(owner, arith.AddfOp) and self.language.exact(owner, (CExpr(""), CExpr(""))) is None
        if not is_exact or self.is_named(value):
            return None
        sides = ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs))  # type: ignore[union-attr]
        addends = (addend for old, addend in sides if self.is_named(old) and self.text(old).code == name)
        return next((self.operand(addend) for addend in addends), None)

    # --- parallel loops -----------------------------------------------------------------------------------------------

    def _parallel(self, op: scf.ParallelOp) -> None:
        """Write a parallel nest with OpenMP pragmas: across threads, and its innermost loop as SIMD if the body is
        plain. Raises LoweringError for a nest that reduces."""
        if op.initVals:
            raise self.language.lacks("an scf.parallel that reduces")
        indices = op.body.block.args
        outer_depth, depth, is_plain = self.depth, len(indices), _is_plain(op)
        collapsed = depth - 1 if is_plain and depth > 1 else depth
        simd = " simd" if is_plain and depth == 1 else ""
        self.line(f"#pragma omp parallel for{simd}{f' collapse({collapsed})' if collapsed > 1 else ''}")
        names = []
        bounds = zip(op.lowerBound, op.upperBound, op.step, strict=True)
        for number, (index, (low, high, step)) in enumerate(zip(indices, bounds, strict=True)):
            names.append(self.name(index, "i"))
            self.texts[index] = CExpr(names[-1])
            if number and number == collapsed:
                self.line("#pragma omp simd")
            code = (self.text(low).code, self.text(high).code, self.text(step).code)
            self.line(f"{self.header(index, code)}{' {' if number == depth - 1 else ''}")
            self.depth += number < depth - 1
        self.nested(op.body.block)
        self.line("}")
        self.depth = outer_depth
        self.taken.difference_update(names)


def _row(extents: Sequence[int]) -> str:
    return "".join(f"[{max(1, extent)}]" for extent in extents)


def _is_plain(op: scf.ParallelOp) -> bool:
    """Return whether the C compiler may vectorise the innermost loop of a parallel nest: there are no loops, vectors or
    temporaries inside."""
    excluded_ops = (scf.ForOp, scf.WhileOp, scf.ParallelOp, memref.AllocOp, memref.AllocaOp)
    inner_ops = [inner for inner in op.body.walk() if inner is not op]
    values = (value for inner in inner_ops for value in (*inner.operands, *inner.results))
    return not any(isinstance(inner, excluded_ops) for inner in inner_ops) and not any(
        isinstance(value.type, VectorType) for value in values
    )


def _stored(function: FuncOp) -> set[SSAValue]:
    stored = set[SSAValue]()
    for op in function.walk():
        match op:
            case memref.StoreOp():
                stored.add(op.memref)
            case vector.StoreOp() | vector.MaskedStoreOp() | ScatterOp():
                stored.add(op.base)
            case memref.CopyOp():
                stored.add(op.destination)
    return stored
