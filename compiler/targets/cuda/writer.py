"""One kernel as CUDA C++ that a person would read: names of the program, index expressions in place, loops as loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import arith, gpu, memref, scf, vector
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, MemRefType, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.gpu import ShuffleMode, ShuffleOp
from compiler.support.errors import LoweringError
from compiler.targets.clike.expressions import PRODUCT, SUM, Text, cast, is_number, plain
from compiler.targets.clike.operations import expression
from compiler.targets.clike.statements import SourceText
from compiler.targets.cuda.constants import word
from compiler.targets.cuda.indices import needs_64_bits, wide_indices
from compiler.targets.cuda.language import Cuda
from compiler.targets.cuda.names import RESERVED
from compiler.targets.cuda.types import COMPONENTS, is_moved_whole, lanes_of, spelled
from compiler.targets.launches import KernelLaunch, allocated_bytes, is_shared, shared_bytes, stored_buffers
from compiler.types.elements import element_bytes

STATIC = 48 << 10
"""The bytes of shared memory that a kernel may declare; more has to be asked for at the launch."""


class CudaWriter(SourceText):
    """A kernel under construction; `helpers` gains what its text needs, `wide` are the indices of 64 bits, `dynamic` is
    its shared memory in bytes, where that has to be asked for at the launch."""

    reserved = RESERVED
    changes = (*SourceText.changes, nvgpu.CopyOp, nvgpu.WaitOp, gpu.BarrierOp)

    def __init__(self, call: KernelLaunch, helpers: set[str]) -> None:
        super().__init__(Cuda(helpers))
        self.call, self.helpers = call, helpers
        self.wide = set[SSAValue]()
        self.dynamic = 0

    def kernel(self) -> str:
        """The whole kernel."""
        body = self.call.kernel.body.block
        self.wide = wide_indices(self.call)
        stored = stored_buffers(self.call.kernel)
        parameters = []
        for argument in body.args:
            type_ = argument.type
            assert isinstance(type_, MemRefType)
            name = self.name(argument)
            const = "" if argument in stored else "const "
            parameters.append(f"{const}{spelled(type_.element_type)}* __restrict__ {name}")
            self.texts[argument] = Text(name)
        self._declare()
        self.ops(body)
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
            self.line("extern __shared__ __align__(16) unsigned char pool[];")
        for op in sorted(allocs, key=is_shared, reverse=True):
            name, element = self.name(op.memref), spelled(op.memref.type.element_type)
            first, *inner_extents = [f"[{extent}]" for extent in op.memref.type.get_shape() or (1,)]
            row = "".join(inner_extents)
            if not is_shared(op):
                self.line(f"{element} {name}{first}{row};")
            elif not self.dynamic:
                self.line(f"__shared__ __align__(16) {element} {name}{first}{row};")
            else:
                pointer = f"{element} (*{name}){row}" if row else f"{element}* {name}"
                type_ = f"{element} (*){row}" if row else f"{element}*"
                self.line(f"{pointer} = reinterpret_cast<{type_}>(pool + {at});")
                at += allocated_bytes(op)
            self.texts[op.memref] = Text(name)

    def type_of(self, value: SSAValue) -> str:
        """The type of a variable that holds a value."""
        if isinstance(value.type, IndexType):
            return "long long" if value in self.wide else "int"
        return spelled(value.type)

    # --- statements -----------------------------------------------------------------------------------------------

    def op(self, op: Operation) -> None:
        """Write an op. Raises LoweringError for one that kernels lack."""
        match op:
            case arith.ConstantOp():
                self._constant(op)
            case gpu.ThreadIdOp() | gpu.BlockIdOp():
                self._hardware(op)
            case gpu.BarrierOp():
                self.line("__syncthreads();")
            case memref.AllocaOp() | gpu.ReturnOp() | scf.YieldOp():
                pass
            case memref.GetGlobalOp():
                self._constant_buffer(op)
            case memref.LoadOp():
                self.value(op, Text(self._element(op.memref, op.indices)))
            case memref.StoreOp():
                self.store(op, self._element(op.memref, op.indices))
            case vector.LoadOp():
                self.declared(op.result, self._wide(op.base, op.indices, op.result.type, const=True))
            case vector.StoreOp():
                target = self._wide(op.base, op.indices, op.vector.type, const=False)
                self.line(f"{target} = {self.text(op.vector).words};")
            case nvgpu.CopyOp():
                self._copy(op)
            case nvgpu.LoadMatrixOp():
                self._load_matrix(op)
            case nvgpu.MmaOp():
                self._multiply(op)
            case ShuffleOp():
                if op.mode.data != ShuffleMode.XOR:
                    raise LoweringError(f"kernels have no shuffle by {op.mode.data.value}")
                words = [self.text(value).words for value in (op.value, op.offset)]
                self.declared(op.result, f"__shfl_xor_sync(0xffffffffu, {', '.join(words)})")
            case nvgpu.GroupOp():
                pass
            case nvgpu.WaitOp():
                self.helpers.add("wait_for_copies")
                self.line("wait_for_copies();")
            case scf.ForOp():
                self.loop(op, *(["#pragma unroll"] if "unroll" in op.attributes else []))
            case scf.IfOp():
                self.branch(op)
            case vector.ExtractOp():
                (lane,) = op.static_position.get_values()
                self.texts[op.result] = self._lane(op.vector, lane)
            case _ if op.results and isinstance(op.results[0].type, VectorType):
                self._vector(op)
            case _:
                self._scalar(op)

    def _constant(self, op: arith.ConstantOp) -> None:
        if not isinstance(op.value, DenseIntOrFPElementsAttr):
            self.texts[op.result] = self.literal(self.language.literal(op.value))

    def _hardware(self, op: gpu.ThreadIdOp | gpu.BlockIdOp) -> None:
        """An index of the hardware under a name, where it is used."""
        if not any(True for _ in op.results[0].uses):
            return
        base = "threadIdx" if isinstance(op, gpu.ThreadIdOp) else "blockIdx"
        name = self.name(op.results[0])
        self.line(f"const int {name} = {base}.{op.dimension.data.value};")
        self.texts[op.results[0]] = Text(name)

    def _copy(self, op: nvgpu.CopyOp) -> None:
        """A copy to shared memory that goes on by itself."""
        type_ = op.src.type
        assert isinstance(type_, MemRefType)
        self.helpers.add("copy_async")
        bytes_ = op.count.value.data * element_bytes(type_.element_type)
        to, source = self._element(op.dst, op.dst_indices), self._element(op.src, op.src_indices)
        self.line(f"copy_async<{bytes_}>(&{to}, &{source});")

    def _load_matrix(self, op: nvgpu.LoadMatrixOp) -> None:
        """Small matrices from shared memory."""
        type_ = op.result.type
        assert isinstance(type_, VectorType)
        if op.tiles.value.data == 1:
            raise LoweringError("kernels load two or four small matrices at once, not one")
        name = "load_transposed" if op.transpose.value.data else "load_matrices"
        self.helpers |= {"Fragment", name}
        suffix = spelled(type_).removeprefix("Fragment")
        self.value(op, Text(f"{name}{suffix}(&{self._element(op.source, op.indices)})"))

    def _multiply(self, op: nvgpu.MmaOp) -> None:
        """A product of small matrices, added to sums."""
        assert isinstance(op.a.type, VectorType)
        self.helpers |= {"Fragment", f"multiply_add of {op.a.type.element_type}"}
        a, b, c = (self.text(value).words for value in (op.a, op.b, op.c))
        self.value(op, Text(f"multiply_add({a}, {b}, {c})"))

    # --- expressions ----------------------------------------------------------------------------------------------

    def text(self, value: SSAValue) -> Text:
        """The expression of a value; a vector of constants is declared where it is used as a whole."""
        if value not in self.texts:
            assert isinstance(value.type, VectorType)
            if len(value.type.get_shape()) == 2:
                return self._zero(value)
            name = self.name(value)
            numbers = ", ".join(self._lane(value, lane).words for lane in range(lanes_of(value.type)))
            self.line(f"const {spelled(value.type)} {name} = {{{numbers}}};")
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
        type_, name = spelled(op.memref.type.element_type), self.name(op.memref)
        symbol = word(op.name_.string_value())
        self.line(f"const {type_}* {name} = reinterpret_cast<const {type_}*>({symbol});")
        self.texts[op.memref] = Text(name)

    def _scalar(self, op: Operation) -> None:
        if not op.operands or not op.results:
            raise LoweringError(f"kernels have no '{op.name}'")
        wide = [value in self.wide for value in op.operands]
        texts = [self.text(value) for value in op.operands]
        self.value(op, expression(op, texts, self.language, wide, op.results[0] in self.wide))

    def _element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """An element: of an array on the chip by its indices, of a pointer by its offset."""
        name, type_ = self.text(buffer).words, buffer.type
        assert isinstance(type_, MemRefType)
        texts = [self.text(value) for value in indices]
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
            self.texts[value] = self.text(op.dest)
            self.line(f"{self.text(op.dest).words}.{COMPONENTS[lane]} = {self.text(op.source).words};")
            return
        name = self.name(value)
        self.line(f"{spelled(type_)} {name};")
        for lane in range(lanes_of(type_)):
            self.line(f"{name}.{COMPONENTS[lane]} = {self._component(op, lane).words};")
        self.texts[value] = Text(name)

    def _component(self, op: Operation, lane: int) -> Text:
        type_ = op.results[0].type
        assert isinstance(type_, VectorType)
        if isinstance(op, vector.BroadcastOp):
            return self.text(op.source)
        if isinstance(op, vector.InsertOp):
            (at,) = op.static_position.get_values()
            return self.text(op.source) if at == lane else self._lane(op.dest, lane)
        operands = [self._lane(value, lane) for value in op.operands]
        return expression(op, operands, self.language, [False] * len(operands))

    def _lane(self, value: SSAValue, lane: int) -> Text:
        """One component of a vector, or register of a small matrix; a number as it is."""
        if not isinstance(value.type, VectorType):
            return self.text(value)
        if len(value.type.get_shape()) == 2:
            return Text(f"{self.text(value).words}.at[{lane}]")
        if is_moved_whole(value.type):
            raise LoweringError(f"kernels have no lanes of {value.type}")
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
            attributes = list(owner.value.get_attrs())
            return Text(self.language.literal(attributes[lane if len(attributes) > 1 else 0]))
        return Text(f"{self.text(value).words}.{COMPONENTS[lane]}")


def _is_own(op: vector.InsertOp) -> bool:
    """Whether the vector that an insertion changes has no other user."""
    owner = op.dest.owner
    made = isinstance(owner, vector.InsertOp | vector.BroadcastOp) and owner.parent is op.parent
    return made and len(list(op.dest.uses)) == 1
