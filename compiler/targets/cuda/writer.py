"""One kernel as readable CUDA C++: names of the program, index expressions in place, loops as loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
from xdsl.dialects import arith, gpu, math, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    Float32Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from compiler.analysis.barriers import FEWEST_BLOCKS
from compiler.dialects.grid import ArriveOp
from compiler.dialects.numbers import dtype_of
from compiler.dialects.upstream import nvgpu
from compiler.dialects.upstream.casts import TruncFOp
from compiler.dialects.upstream.gpu import ShuffleMode, ShuffleOp
from compiler.support.errors import LoweringError
from compiler.targets.clike.expressions import PRODUCT, SUM, CExpr, associative, cast, is_number
from compiler.targets.clike.operations import expression
from compiler.targets.clike.statements import SourceWriter
from compiler.targets.cuda.constants import c_name
from compiler.targets.cuda.helpers import NARROWED_POWER
from compiler.targets.cuda.indices import needs_64_bits, wide_indices
from compiler.targets.cuda.language import Cuda
from compiler.targets.cuda.names import RESERVED
from compiler.targets.cuda.types import COMPONENTS, is_opaque_vector, lanes_of, spelled
from compiler.targets.cuda.unrolling import pragmas
from compiler.targets.launches import KernelLaunch, allocated_bytes, is_shared, pool_bytes, stored_buffers
from compiler.types.elements import element_bytes

_VECTORS = (vector.LoadOp, vector.StoreOp, nvgpu.CopyOp)
STATIC = 48 << 10
"""The bytes of shared memory that a kernel may declare; more must be dynamic."""


class CudaWriter(SourceWriter):
    """A writer of a kernel's text. helpers: collects the helpers that it calls. has_groups: whether a wait leaves
    groups of copies in flight. After `kernel`, `wide` has the indices of 64 bits, `truths` the lanes of vectors of
    truth values, and `dynamic` the bytes of dynamic shared memory, 0 for static memory."""

    reserved = RESERVED
    changes = (*SourceWriter.changes, nvgpu.CopyOp, nvgpu.GroupOp, nvgpu.WaitOp, gpu.BarrierOp, ArriveOp)

    def __init__(self, call: KernelLaunch, helpers: set[str]) -> None:
        super().__init__(Cuda(helpers))
        self.call, self.helpers = call, helpers
        self.wide = set[SSAValue]()
        self.truths = dict[SSAValue, list[CExpr]]()
        self.dynamic = 0
        waits = (op for op in call.kernel.walk() if isinstance(op, nvgpu.WaitOp))
        self.has_groups = any(op.groups is not None for op in waits)

    def kernel(self) -> str:
        """Return the kernel's CUDA C++: a comment with its launch, its head and its body. Raises LoweringError for an
        op that CUDA C++ lacks."""
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
            self.texts[argument] = CExpr(name)
        self._declare()
        self.ops(body)
        bounds, fewest = str(prod(self.call.block)), self.call.kernel.attributes.get(FEWEST_BLOCKS)
        if isinstance(fewest, IntegerAttr):
            bounds += f", {fewest.value.data}"
        lines = [
            f"// grid {self.call.grid}, block {self.call.block}",
            f'extern "C" __global__ void __launch_bounds__({bounds})',
            f"{self.call.kernel.sym_name.data}({', '.join(parameters)}) {{",
        ]
        return "\n".join([*lines, *self.lines, "}"])

    # --- declarations ---------------------------------------------------------------------------------------------

    def _declare(self) -> None:
        """Declare shared buffers, in a dynamic pool if they exceed STATIC bytes, then each thread's local buffers."""
        allocs = [op for op in self.call.kernel.walk() if isinstance(op, memref.AllocaOp)]
        total, pool_offset = pool_bytes(self.call.kernel), 0
        if total > STATIC:
            self.dynamic = total
            self.line("extern __shared__ __align__(16) unsigned char pool[];")
        for op in sorted(allocs, key=is_shared, reverse=True):
            name, element = self.name(op.memref), spelled(op.memref.type.element_type)
            outer_extent, *inner_extents = [f"[{extent}]" for extent in op.memref.type.get_shape() or (1,)]
            inner_extent_text = "".join(inner_extents)
            has_vectors = any(isinstance(use.operation, _VECTORS) for use in op.memref.uses)
            is_aligned = has_vectors or (is_shared(op) and _is_whole(op))
            aligned = "__align__(16) " if is_aligned else ""
            if not is_shared(op):
                self.line(f"{aligned}{element} {name}{outer_extent}{inner_extent_text};")
            elif not self.dynamic:
                self.line(f"__shared__ {aligned}{element} {name}{outer_extent}{inner_extent_text};")
            else:
                pointer = f"{element} (*{name}){inner_extent_text}" if inner_extent_text else f"{element}* {name}"
                type_ = f"{element} (*){inner_extent_text}" if inner_extent_text else f"{element}*"
                self.line(f"{pointer} = reinterpret_cast<{type_}>(pool + {pool_offset});")
                pool_offset += allocated_bytes(op)
            self.texts[op.memref] = CExpr(name)

    def type_of(self, value: SSAValue) -> str:
        """Return the C type of a value; an index is `long long` if it is in `wide`, else `int`."""
        if isinstance(value.type, IndexType):
            return "long long" if value in self.wide else "int"
        return spelled(value.type)

    # --- statements -----------------------------------------------------------------------------------------------

    def op(self, op: Operation) -> None:
        """Write an op. Raises LoweringError for an op that CUDA C++ lacks."""
        match op:
            case arith.ConstantOp():
                self._constant(op)
            case gpu.ThreadIdOp() | gpu.BlockIdOp():
                self._hardware(op)
            case gpu.BarrierOp():
                self.line("__syncthreads();")
            case ArriveOp():
                self.helpers.add("arrives_last")
                counter = self._element(op.counters, [op.index])
                self.declared(op.last, f"arrives_last(&{counter}, {op.count.value.data}u)")
            case memref.AllocaOp() | gpu.ReturnOp() | scf.YieldOp():
                pass
            case memref.GetGlobalOp():
                self._constant_buffer(op)
            case memref.LoadOp():
                self.value(op, CExpr(self._element(op.memref, op.indices)))
            case memref.StoreOp():
                self.store(op, self._element(op.memref, op.indices))
            case vector.LoadOp():
                self.declared(op.result, self._vector_access(op.base, op.indices, op.result.type, const=True))
            case vector.StoreOp():
                target = self._vector_access(op.base, op.indices, op.vector.type, const=False)
                self.line(f"{target} = {self.text(op.vector).code};")
            case nvgpu.CopyOp():
                self._copy(op)
            case nvgpu.LoadMatrixOp():
                self._load_matrix(op)
            case nvgpu.MmaOp():
                self._multiply(op)
            case ShuffleOp():
                if op.mode.data != ShuffleMode.XOR:
                    raise LoweringError(f"kernels have no shuffle by {op.mode.data.value}")
                code = [self.text(value).code for value in (op.value, op.offset)]
                self.declared(op.result, f"__shfl_xor_sync(0xffffffffu, {', '.join(code)})")
            case nvgpu.GroupOp():
                if self.has_groups:
                    self.helpers.add("commit_copies")
                    self.line("commit_copies();")
            case nvgpu.WaitOp():
                self._wait(op)
            case scf.ForOp():
                self.loop(op, *pragmas(op))
            case scf.IfOp():
                self.branch(op)
            case vector.ExtractOp():
                (lane,) = op.static_position.get_values()
                self.texts[op.result] = self._lane(op.vector, lane)
            case vector.ShuffleOp() if len(op.result.type.get_shape()) == 2:
                registers = ", ".join(self._lane(op.v1, number).code for number in op.mask.get_values())
                self.value(op, CExpr(f"{spelled(op.result.type)}{{{registers}}}"))
            case math.Exp2Op() if _is_narrowed(op):
                self.helpers.add(NARROWED_POWER)
                self.value(op, CExpr(f"{NARROWED_POWER}({self.text(op.operand).code})"))
            case _ if op.results and isinstance(op.results[0].type, VectorType):
                self._vector_op(op)
            case _:
                self._scalar(op)

    def _constant(self, op: arith.ConstantOp) -> None:
        if not isinstance(op.value, DenseIntOrFPElementsAttr):
            self.texts[op.result] = self.literal(self.language.literal(op.value))

    def _hardware(self, op: gpu.ThreadIdOp | gpu.BlockIdOp) -> None:
        if not any(True for _ in op.results[0].uses):
            return
        base = "threadIdx" if isinstance(op, gpu.ThreadIdOp) else "blockIdx"
        name = self.name(op.results[0])
        self.line(f"const int {name} = {base}.{op.dimension.data.value};")
        self.texts[op.results[0]] = CExpr(name)

    def _copy(self, op: nvgpu.CopyOp) -> None:
        type_ = op.src.type
        assert isinstance(type_, MemRefType)
        self.helpers |= {"copy_async"} if op.src_elements is None else {"copy_some_async"}
        bytes_ = op.count.value.data * element_bytes(type_.element_type)
        target, source = self._element(op.dst, op.dst_indices), self._element(op.src, op.src_indices)
        if op.src_elements is None:
            self.line(f"copy_async<{bytes_}>(&{target}, &{source});")
            return
        each, size = element_bytes(type_.element_type), self.text(op.src_elements)
        code = associative("*", size, CExpr(str(each)), PRODUCT).code
        self.line(f"copy_some_async<{bytes_}>(&{target}, &{source}, {code});")

    def _wait(self, op: nvgpu.WaitOp) -> None:
        name, in_flight = ("wait_for_copies", "") if op.groups is None else ("wait_for_groups", op.groups.value.data)
        self.helpers.add(name)
        self.line(f"{name}{f'<{in_flight}>' if in_flight != '' else ''}();")

    def _load_matrix(self, op: nvgpu.LoadMatrixOp) -> None:
        type_ = op.result.type
        assert isinstance(type_, VectorType)
        if op.tiles.value.data == 1:
            raise LoweringError("kernels load two or four small matrices at once, not one")
        name = "load_transposed" if op.transpose.value.data else "load_matrices"
        self.helpers |= {"Fragment", name}
        suffix = spelled(type_).removeprefix("Fragment")
        self.value(op, CExpr(f"{name}{suffix}(&{self._element(op.source, op.indices)})"))

    def _multiply(self, op: nvgpu.MmaOp) -> None:
        assert isinstance(op.a.type, VectorType)
        self.helpers |= {"Fragment", f"multiply_add of {op.a.type.element_type}"}
        a, b, c = (self.text(value).code for value in (op.a, op.b, op.c))
        self.value(op, CExpr(f"multiply_add({a}, {b}, {c})"))

    # --- expressions ----------------------------------------------------------------------------------------------

    def text(self, value: SSAValue) -> CExpr:
        """Return the expression of a value; a constant vector is declared first, unless it is zero in a type without
        lanes or a fragment. Raises LoweringError for a constant fragment other than zero."""
        if value not in self.texts:
            assert isinstance(value.type, VectorType)
            if len(value.type.get_shape()) == 2:
                return self._zero(value)
            words = _words(value) if is_opaque_vector(value.type) else []
            if words and not any(int(word.rstrip("u"), 16) for word in words):
                return self._zero(value)
            name = self.name(value)
            if words:
                numbers = ", ".join(words)
            else:
                numbers = ", ".join(self._lane(value, lane).code for lane in range(lanes_of(value.type)))
            self.line(f"const {spelled(value.type)} {name} = {{{numbers}}};")
            return CExpr(name)
        return self.texts[value]

    def _zero(self, value: SSAValue) -> CExpr:
        owner = value.owner
        assert isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr)
        if any(owner.value.get_values()):
            raise LoweringError(f"kernels have no constants of type {value.type} but zero")
        if isinstance(value.type, VectorType) and not is_opaque_vector(value.type):
            self.helpers.add("Fragment")
        return CExpr(f"{spelled(value.type)}{{}}")

    def _constant_buffer(self, op: memref.GetGlobalOp) -> None:
        """Declare a typed pointer to a constant, whose array in the text has bit patterns."""
        type_, name = spelled(op.memref.type.element_type), self.name(op.memref)
        symbol = c_name(op.name_.string_value())
        self.line(f"const {type_}* {name} = reinterpret_cast<const {type_}*>({symbol});")
        self.texts[op.memref] = CExpr(name)

    def _scalar(self, op: Operation) -> None:
        if not op.operands or not op.results:
            raise LoweringError(f"kernels have no '{op.name}'")
        wide = [value in self.wide for value in op.operands]
        texts = [self.text(value) for value in op.operands]
        self.value(op, expression(op, texts, self.language, wide, op.results[0] in self.wide))

    def _element(self, buffer: SSAValue, indices: Sequence[SSAValue]) -> str:
        """Return the C expression of an element: indices into shared and local arrays, for arguments and constants an
        offset from a pointer, of 64 bits if the buffer needs them."""
        name, type_ = self.text(buffer).code, buffer.type
        assert isinstance(type_, MemRefType)
        texts = [self.text(value) for value in indices]
        if not isinstance(buffer.owner, Block | memref.GetGlobalOp):
            return name + "".join(f"[{text.code}]" for text in texts or [CExpr("0")])
        offset, is_long = CExpr("0"), not needs_64_bits(type_)
        for index, text, size in zip(indices, texts, type_.get_shape(), strict=True):
            if not is_long and not is_number(text):
                is_long = True
                text = text if index in self.wide else cast("long long", text)
            scaled = associative("*", offset, CExpr(str(size)), PRODUCT)
            offset = associative("+", scaled, text, SUM)
        return f"{name}[{offset.code}]"

    def _vector_access(self, base: SSAValue, indices: Sequence[SSAValue], type_: Attribute, const: bool) -> str:
        qualifier = "const " if const else ""
        if isinstance(type_, VectorType) and len(type_.get_shape()) == 2:
            self.helpers.add("Fragment")
        return f"*reinterpret_cast<{qualifier}{spelled(type_)}*>(&{self._element(base, indices)})"

    # --- short vectors --------------------------------------------------------------------------------------------

    def _vector_op(self, op: Operation) -> None:
        value = op.results[0]
        type_ = value.type
        assert isinstance(type_, VectorType)
        if is_opaque_vector(type_):
            raise LoweringError(f"kernels compute nothing of type {type_}: its lanes are not to be had")
        if isinstance(op, vector.InsertOp) and _can_insert_in_place(op):
            (lane,) = op.static_position.get_values()
            self.texts[value] = self.text(op.dest)
            self.line(f"{self.text(op.dest).code}.{COMPONENTS[lane]} = {self.text(op.source).code};")
            return
        if type_.element_type == i1:
            self.truths[value] = [self._truth(op, lane) for lane in range(lanes_of(type_))]
            return
        name = self.name(value)
        self.line(f"{spelled(type_)} {name};")
        for lane in range(lanes_of(type_)):
            self.line(f"{name}.{COMPONENTS[lane]} = {self._component(op, lane).code};")
        self.texts[value] = CExpr(name)

    def _truth(self, op: Operation, lane: int) -> CExpr:
        """Declare a lane of a vector of truth values, which CUDA C++ has no type for; return its name."""
        value, name = self._component(op, lane).code, self.name(op.results[0])
        self.line(f"const bool {name} = {value};")
        return CExpr(name)

    def _component(self, op: Operation, lane: int) -> CExpr:
        type_ = op.results[0].type
        assert isinstance(type_, VectorType)
        if isinstance(op, vector.BroadcastOp):
            return self.text(op.source)
        if isinstance(op, vector.InsertOp):
            (inserted_lane,) = op.static_position.get_values()
            return self.text(op.source) if inserted_lane == lane else self._lane(op.dest, lane)
        operands = [self._lane(value, lane) for value in op.operands]
        return expression(op, operands, self.language, [False] * len(operands))

    def _lane(self, value: SSAValue, lane: int) -> CExpr:
        """Return a component of a vector or a register of a fragment; a scalar unchanged; `lane` is the number of
        either. Raises LoweringError for a vector that can be loaded and stored only."""
        if not isinstance(value.type, VectorType):
            return self.text(value)
        if value in self.truths:
            return self.truths[value][lane]
        if len(value.type.get_shape()) == 2:
            return CExpr(f"{self.text(value).code}.at[{lane}]")
        if is_opaque_vector(value.type):
            raise LoweringError(f"kernels have no lanes of {value.type}")
        owner = value.owner
        if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, DenseIntOrFPElementsAttr):
            attributes = list(owner.value.get_attrs())
            return CExpr(self.language.literal(attributes[lane if len(attributes) > 1 else 0]))
        return CExpr(f"{self.text(value).code}.{COMPONENTS[lane]}")


def _words(value: SSAValue) -> list[str]:
    """Return the bits of a constant vector as literals of 32-bit words, for a vector whose lanes CUDA C++ has no type
    for; its bits are a multiple of 32. Raises LoweringError for a vector that is no constant."""
    owner, type_ = value.owner, value.type
    assert isinstance(type_, VectorType)
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, DenseIntOrFPElementsAttr):
        raise LoweringError(f"kernels have no lanes of {type_}")
    numbers = np.array(owner.value.get_values(), dtype_of(type_.element_type))
    return [f"{int(word):#010x}u" for word in np.broadcast_to(numbers, lanes_of(type_)).copy().view(np.uint32)]


def _is_narrowed(op: math.Exp2Op) -> bool:
    """Return whether a power of two in f32 has uses, all of which round it to 16 bits."""
    uses = [use.operation for use in op.result.uses]
    narrow = all(isinstance(user, TruncFOp) and element_bytes(user.result.type) == 2 for user in uses)
    return bool(uses) and narrow and isinstance(op.result.type, Float32Type)


def _is_whole(op: memref.AllocaOp) -> bool:
    """Return whether the size of a buffer is a multiple of 16 bytes. Other buffers are not aligned to 16 bytes: NVVM
    would read past their end."""
    return prod(op.memref.type.get_shape()) * element_bytes(op.memref.type.element_type) % 16 == 0


def _can_insert_in_place(op: vector.InsertOp) -> bool:
    """Return whether an insertion may overwrite its vector: a temporary of the same block without other uses."""
    owner = op.dest.owner
    is_temporary = isinstance(owner, vector.InsertOp | vector.BroadcastOp) and owner.parent is op.parent
    return is_temporary and len(list(op.dest.uses)) == 1
