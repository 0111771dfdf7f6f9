"""One kernel as CUDA C++ that a person would read: names of the program, index expressions in place, loops as loops."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleMode, ShuffleOp
from compiler.support.errors import LoweringError
from compiler.targets.cuda.constants import word
from compiler.targets.cuda.expressions import ATOM, NEGATIVE, PRODUCT, SUM, Text, bare, cast, is_number, plain
from compiler.targets.cuda.indices import needs_64_bits, wide_indices
from compiler.targets.cuda.names import RESERVED
from compiler.targets.cuda.operations import expression, rounded
from compiler.targets.cuda.types import COMPONENTS, is_moved_whole, lanes_of, literal, spelled
from compiler.targets.launches import Call, allocated_bytes, is_shared, shared_bytes, stored_buffers
from compiler.types.elements import element_bytes

STATIC = 48 << 10
"""The bytes of shared memory that a kernel may declare; more has to be asked for at the launch."""


@dataclass
class Writer:
    """A kernel under construction; `helpers` gains what its text needs, `wide` are the indices of 64 bits, `dynamic` is
    its shared memory in bytes, where that has to be asked for at the launch."""

    call: Call
    helpers: set[str]
    wide: set[SSAValue] = field(default_factory=set)
    lines: list[str] = field(default_factory=list)
    texts: dict[SSAValue, Text] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    depth: int = 1
    dynamic: int = 0

    def text(self) -> str:
        """The whole kernel."""
        body = self.call.kernel.body.block
        self.wide = wide_indices(self.call)
        stored = stored_buffers(self.call.kernel)
        parameters = []
        for argument in body.args:
            type_ = argument.type
            assert isinstance(type_, MemRefType)
            name = self._name(argument)
            const = "" if argument in stored else "const "
            parameters.append(f"{const}{spelled(type_.element_type)}* __restrict__ {name}")
            self.texts[argument] = Text(name)
        self._declare()
        self._ops(body)
        threads = prod(self.call.block)
        head = [
            f"// grid {self.call.grid}, block {self.call.block}",
            f'extern "C" __global__ void __launch_bounds__({threads})',
            f"{self.call.kernel.sym_name.data}({', '.join(parameters)}) {{",
        ]
        return "\n".join([*head, *self.lines, "}"])

    # --- declarations ---------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Buffers on the chip, at the top: the block's shared ones, then each thread's own."""
        allocs = [op for op in self.call.kernel.walk() if isinstance(op, memref.AllocaOp)]
        total, at = shared_bytes(self.call.kernel), 0
        if total > STATIC:
            self.dynamic = total
            self._line("extern __shared__ __align__(16) unsigned char pool[];")
        for op in sorted(allocs, key=is_shared, reverse=True):
            name, element = self._name(op.memref), spelled(op.memref.type.element_type)
            first, *inner_extents = [f"[{extent}]" for extent in op.memref.type.get_shape() or (1,)]
            row = "".join(inner_extents)
            if not is_shared(op):
                self._line(f"{element} {name}{first}{row};")
            elif not self.dynamic:
                self._line(f"__shared__ __align__(16) {element} {name}{first}{row};")
            else:
                pointer = f"{element} (*{name}){row}" if row else f"{element}* {name}"
                type_ = f"{element} (*){row}" if row else f"{element}*"
                self._line(f"{pointer} = reinterpret_cast<{type_}>(pool + {at});")
                at += allocated_bytes(op)
            self.texts[op.memref] = Text(name)

    def _type(self, value: SSAValue) -> str:
        """The type of a variable that holds a value."""
        if isinstance(value.type, IndexType):
            return "long long" if value in self.wide else "int"
        return spelled(value.type)

    def _name(self, value: SSAValue, default: str = "v") -> str:
        """A name of its own, like the one in the program."""
        stem = re.sub(r"\W", "_", value.name_hint or default, flags=re.ASCII)
        stem = f"_{stem}" if stem[0].isdigit() or stem in RESERVED or stem[:2] == "__" else stem
        name, number = stem, 0
        while name in self.taken:
            number += 1
            name = f"{stem}_{number}"
        self.taken.add(name)
        return name

    def _line(self, text: str) -> None:
        self.lines.append(f"{'  ' * self.depth}{text}")

    # --- statements -----------------------------------------------------------------------------------------------

    def _ops(self, block: Block) -> None:
        for op in block.ops:
            self._op(op)

    def _op(self, op: Operation) -> None:
        match op:
            case arith.ConstantOp():
                self._constant(op)
            case gpu.ThreadIdOp() | gpu.BlockIdOp():
                self._hardware(op)
            case gpu.BarrierOp():
                self._line("__syncthreads();")
            case memref.AllocaOp() | gpu.ReturnOp() | scf.YieldOp():
                pass
            case memref.GetGlobalOp():
                self._constant_buffer(op)
            case memref.LoadOp():
                self._value(op, Text(self._element(op.memref, op.indices)))
            case memref.StoreOp():
                self._store(op)
            case vector.LoadOp():
                self._declared(op.result, self._wide(op.base, op.indices, op.result.type, const=True))
            case vector.StoreOp():
                target = self._wide(op.base, op.indices, op.vector.type, const=False)
                self._line(f"{target} = {self._text(op.vector).words};")
            case nvgpu.CopyOp():
                self._copy(op)
            case nvgpu.LoadMatrixOp():
                self._load_matrix(op)
            case nvgpu.MmaOp():
                self._multiply(op)
            case ShuffleOp():
                if op.mode.data != ShuffleMode.XOR:
                    raise LoweringError(f"kernels have no shuffle by {op.mode.data.value}")
                words = [self._text(value).words for value in (op.value, op.offset)]
                self._declared(op.result, f"__shfl_xor_sync(0xffffffffu, {', '.join(words)})")
            case nvgpu.GroupOp():
                pass
            case nvgpu.WaitOp():
                self.helpers.add("wait_for_copies")
                self._line("wait_for_copies();")
            case scf.ForOp():
                self._for(op)
            case scf.IfOp():
                self._if(op)
            case vector.ExtractOp():
                (lane,) = op.static_position.get_values()
                self.texts[op.result] = self._lane(op.vector, lane)
            case _ if op.results and isinstance(op.results[0].type, VectorType):
                self._vector(op)
            case _:
                self._scalar(op)

    def _constant(self, op: arith.ConstantOp) -> None:
        if not isinstance(op.value, DenseIntOrFPElementsAttr):
            text = literal(op.value)
            self.texts[op.result] = Text(text, NEGATIVE if text.startswith("-") else ATOM)

    def _hardware(self, op: gpu.ThreadIdOp | gpu.BlockIdOp) -> None:
        """An index of the hardware under a name, where it is used."""
        if not any(True for _ in op.results[0].uses):
            return
        base = "threadIdx" if isinstance(op, gpu.ThreadIdOp) else "blockIdx"
        name = self._name(op.results[0])
        self._line(f"const int {name} = {base}.{op.dimension.data.value};")
        self.texts[op.results[0]] = Text(name)

    def _store(self, op: memref.StoreOp) -> None:
        target = self._element(op.memref, op.indices)
        added = self._added(op)
        if added is not None:
            self._line(f"{target} += {added.words};")
        else:
            self._line(f"{target} = {self._text(op.value).words};")

    def _added(self, op: memref.StoreOp) -> Text | None:
        """A store that accumulates into its element."""
        owner = op.value.owner
        if not isinstance(owner, arith.AddfOp) or self._is_named(op.value):
            return None
        for old, addend in ((owner.lhs, owner.rhs), (owner.rhs, owner.lhs)):
            load = old.owner
            if (
                isinstance(load, memref.LoadOp)
                and load.memref is op.memref
                and list(load.indices) == list(op.indices)
                and not self._is_named(old)
                and rounded(owner, (Text(""), Text(""))) is None
            ):
                return self._text(addend)
        return None

    def _is_named(self, value: SSAValue) -> bool:
        text = self.texts.get(value)
        return text is not None and text.words in self.taken

    def _copy(self, op: nvgpu.CopyOp) -> None:
        """A copy to shared memory that goes on by itself."""
        type_ = op.src.type
        assert isinstance(type_, MemRefType)
        self.helpers.add("copy_async")
        bytes_ = op.count.value.data * element_bytes(type_.element_type)
        to, source = self._element(op.dst, op.dst_indices), self._element(op.src, op.src_indices)
        self._line(f"copy_async<{bytes_}>(&{to}, &{source});")

    def _load_matrix(self, op: nvgpu.LoadMatrixOp) -> None:
        """Small matrices from shared memory."""
        type_ = op.result.type
        assert isinstance(type_, VectorType)
        if op.tiles.value.data == 1:
            raise LoweringError("kernels load two or four small matrices at once, not one")
        name = "load_transposed" if op.transpose.value.data else "load_matrices"
        self.helpers |= {"Fragment", name}
        suffix = spelled(type_).removeprefix("Fragment")
        self._value(op, Text(f"{name}{suffix}(&{self._element(op.source, op.indices)})"))

    def _multiply(self, op: nvgpu.MmaOp) -> None:
        """A product of small matrices, added to sums."""
        assert isinstance(op.a.type, VectorType)
        self.helpers |= {"Fragment", f"multiply_add of {op.a.type.element_type}"}
        a, b, c = (self._text(value).words for value in (op.a, op.b, op.c))
        self._value(op, Text(f"multiply_add({a}, {b}, {c})"))

    def _for(self, op: scf.ForOp) -> None:
        body = op.body.block
        names = self._carried(op.results, op.iter_args)
        for argument, name in zip(body.args[1:], names, strict=True):
            self.texts[argument] = Text(name)
        low, high, step = (self._text(value).words for value in (op.lb, op.ub, op.step))
        if low.isdigit() and high.isdigit() and int(high) == int(low) + 1 and not names:
            self.texts[body.args[0]] = Text(low)
            self._ops(body)
            return
        name = self._name(body.args[0], "i")
        self.texts[body.args[0]] = Text(name)
        if "unroll" in op.attributes:
            self._line("#pragma unroll")
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        self._line(f"for ({self._type(body.args[0])} {name} = {low}; {name} < {high}; {advance}) {{")
        self._nested(body, names)
        self._line("}")
        self.taken.discard(name)

    def _carried(self, values: Sequence[SSAValue], initial: Sequence[SSAValue]) -> list[str]:
        """Variables for the results of a loop or a branch, set to the initial values."""
        names = []
        for position, value in enumerate(values):
            name = self._name(value)
            start = f" = {self._text(initial[position]).words}" if initial else ""
            self._line(f"{self._type(value)} {name}{start};")
            self.texts[value] = Text(name)
            names.append(name)
        return names

    def _nested(self, body: Block, names: Sequence[str]) -> None:
        self.depth += 1
        self._ops(body)
        last = body.last_op
        if isinstance(last, scf.YieldOp):
            given = [self._text(value).words for value in last.operands]
            if len(names) > 1:  # a new value may read another variable's old one
                given = [self._held(value, words) for value, words in zip(last.operands, given, strict=True)]
            for name, words in zip(names, given, strict=True):
                self._line(f"{name} = {words};")
        self.depth -= 1

    def _held(self, value: SSAValue, words: str) -> str:
        """A variable of its own with a value."""
        name = self._name(value, "next")
        self._line(f"const {self._type(value)} {name} = {words};")
        return name

    def _if(self, op: scf.IfOp) -> None:
        names = self._carried(op.results, ())
        self._line(f"if ({bare(self._text(op.cond).words)}) {{")
        self._nested(op.true_region.block, names)
        if op.false_region.blocks and (names or len(list(op.false_region.block.ops)) > 1):
            self._line("} else {")
            self._nested(op.false_region.block, names)
        self._line("}")

    # --- expressions ----------------------------------------------------------------------------------------------

    def _text(self, value: SSAValue) -> Text:
        """The expression of a value; a vector of constants is declared where it is used as a whole."""
        if value not in self.texts:
            assert isinstance(value.type, VectorType)
            if len(value.type.get_shape()) == 2:
                return self._zero(value)
            name = self._name(value)
            numbers = ", ".join(self._lane(value, lane).words for lane in range(lanes_of(value.type)))
            self._line(f"const {spelled(value.type)} {name} = {{{numbers}}};")
            return Text(name)
        return self.texts[value]

    def _zero(self, value: SSAValue) -> Text:
        """A small matrix of constants, which are zeros."""
        owner = value.owner
        assert isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr)
        if any(owner.value.get_values()):
            raise LoweringError(f"kernels have no constants of type {value.type} but zero")
        self.helpers.add("Fragment")
        return Text(f"{spelled(value.type)}{{}}")

    def _constant_buffer(self, op: memref.GetGlobalOp) -> None:
        """The elements of a constant, whose bits the text declares."""
        type_, name = spelled(op.memref.type.element_type), self._name(op.memref)
        symbol = word(op.name_.string_value())
        self._line(f"const {type_}* {name} = reinterpret_cast<const {type_}*>({symbol});")
        self.texts[op.memref] = Text(name)

    def _value(self, op: Operation, text: Text) -> None:
        """What an op gives: in place where that means the same, else under a name. Arithmetic of indices means the same
        everywhere; an index that comes from memory does not."""
        value = op.results[0]
        if (isinstance(value.type, IndexType) and op.name != "arith.index_cast") or _in_place(op):
            self.texts[value] = text
        else:
            self._declared(value, text.words)

    def _declared(self, value: SSAValue, words: str) -> None:
        name = self._name(value)
        self._line(f"const {self._type(value)} {name} = {words};")
        self.texts[value] = Text(name)

    def _scalar(self, op: Operation) -> None:
        if not op.operands or not op.results:
            raise LoweringError(f"kernels have no '{op.name}'")
        wide = [value in self.wide for value in op.operands]
        texts = [self._text(value) for value in op.operands]
        self._value(op, expression(op, texts, self.helpers, wide, op.results[0] in self.wide))

    def _element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """An element: of an array on the chip by its indices, of a pointer by its offset."""
        name, type_ = self._text(buffer).words, buffer.type
        assert isinstance(type_, MemRefType)
        texts = [self._text(value) for value in indices]
        if not isinstance(buffer.owner, Block | memref.GetGlobalOp):
            return name + "".join(f"[{text.words}]" for text in texts or [Text("0")])
        offset, is_long = Text("0"), not needs_64_bits(type_)
        for index, text, size in zip(indices, texts, type_.get_shape(), strict=True):
            if not is_long and not is_number(text):
                is_long = True
                text = text if index in self.wide else cast("long long", text)
            scaled = plain("*", offset, Text(str(size)), PRODUCT)
            offset = plain("+", scaled, text, SUM)
        return f"{name}[{offset.words}]"

    def _wide(self, base: SSAValue, indices: Sequence[SSAValue], type_: Attribute, const: bool) -> str:
        """Elements side by side, as one short vector."""
        qualifier = "const " if const else ""
        return f"*reinterpret_cast<{qualifier}{spelled(type_)}*>(&{self._element(base, indices)})"

    # --- short vectors --------------------------------------------------------------------------------------------

    def _vector(self, op: Operation) -> None:
        """An op on short vectors, component by component."""
        value = op.results[0]
        type_ = value.type
        assert isinstance(type_, VectorType)
        if is_moved_whole(type_):
            raise LoweringError(f"kernels compute nothing of type {type_}: its lanes are not to be had")
        if isinstance(op, vector.InsertOp) and _is_own(op):
            (lane,) = op.static_position.get_values()
            self.texts[value] = self._text(op.dest)
            self._line(f"{self._text(op.dest).words}.{COMPONENTS[lane]} = {self._text(op.source).words};")
            return
        name = self._name(value)
        self._line(f"{spelled(type_)} {name};")
        for lane in range(lanes_of(type_)):
            self._line(f"{name}.{COMPONENTS[lane]} = {self._component(op, lane).words};")
        self.texts[value] = Text(name)

    def _component(self, op: Operation, lane: int) -> Text:
        type_ = op.results[0].type
        assert isinstance(type_, VectorType)
        if isinstance(op, vector.BroadcastOp):
            return self._text(op.source)
        if isinstance(op, vector.InsertOp):
            (at,) = op.static_position.get_values()
            return self._text(op.source) if at == lane else self._lane(op.dest, lane)
        operands = [self._lane(value, lane) for value in op.operands]
        return expression(op, operands, self.helpers, [False] * len(operands))

    def _lane(self, value: SSAValue, lane: int) -> Text:
        """One component of a vector, or register of a small matrix; a number as it is."""
        if not isinstance(value.type, VectorType):
            return self._text(value)
        if len(value.type.get_shape()) == 2:
            return Text(f"{self._text(value).words}.at[{lane}]")
        if is_moved_whole(value.type):
            raise LoweringError(f"kernels have no lanes of {value.type}")
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
            attributes = list(owner.value.get_attrs())
            return Text(literal(attributes[lane if len(attributes) > 1 else 0]))
        return Text(f"{self._text(value).words}.{COMPONENTS[lane]}")


def _is_own(op: vector.InsertOp) -> bool:
    """Whether the vector that an insertion changes has no other user."""
    owner = op.dest.owner
    made = isinstance(owner, vector.InsertOp | vector.BroadcastOp) and owner.parent is op.parent
    return made and len(list(op.dest.uses)) == 1


def _in_place(op: Operation) -> bool:
    """Whether a value may stand where it is used: that is one place, in the same block, with nothing between that
    writes."""
    uses = list(op.results[0].uses)
    if len(uses) != 1:
        return False
    user = uses[0].operation
    if user.parent is not op.parent or isinstance(op.results[0].type, IndexType):
        return False
    if isinstance(user, memref.LoadOp | arith.ConstantOp) and isinstance(op, memref.LoadOp):
        return False
    between = op.next_op
    while between is not None and between is not user:
        if isinstance(between, _CHANGES):
            return False
        between = between.next_op
    return between is user and not isinstance(user, scf.ForOp | vector.BroadcastOp)


_CHANGES = (
    memref.StoreOp,
    vector.StoreOp,
    nvgpu.CopyOp,
    nvgpu.WaitOp,
    gpu.BarrierOp,
    scf.ForOp,
    scf.IfOp,
)
"""Whether an op, or one in its regions, may write memory."""
