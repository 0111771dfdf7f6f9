"""Symbols, parameters with the attributes that LLVM may rely on, and the workspace of functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnrealizedConversionCastOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue, Use

from compiler.affine.limits import fits
from compiler.dialects.functions import SLOT_ALIGNMENT, called, callees, outputs
from compiler.dialects.tile_intrinsics import LoadOp, TileLoadOp
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.vector import GatherOp
from compiler.dialects.upstream.walk import ops_in
from compiler.lowering.low_to_llvm.function import FunctionEmitter
from compiler.lowering.low_to_llvm.types import buffer_bytes
from compiler.support.errors import LoweringError

_PAGE = 4096
"""Addresses that are a multiple of this apart fall into the same set of the first cache."""

_RESERVED = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[tl]gamma"
    r"|fma|fmod|remainder|ldexp|frexp|modf|fabs|floor|ceil|l?l?round|roundeven|trunc|l?l?rint|nearbyint"
    r"|copysign|f(max|min)(imum)?(_num)?)[fl]?|mem(cpy|move|set|cmp)|bzero|bcmp|__.*|llvm\..*"
)


def symbol(name: str) -> str:
    """A function's symbol: its name in ASCII, with a prefix if LLVM itself may mean something by it."""
    plain = name.encode("ascii", "backslashreplace").decode().replace("\0", "\\x00")
    return f"strata.{plain}" if not plain or _RESERVED.fullmatch(plain) else plain


@dataclass(frozen=True)
class Workspace:
    """The scratch memory of a function, in bytes: the shared part, then a part for each thread."""

    shared: int
    private: int

    def size(self, threads: int) -> int:
        """The bytes for that many threads."""
        return self.shared + threads * self.private


def workspace(function: FuncOp) -> Workspace:
    """The workspace of a function.

    Parallel loops run one after the other, so the largest decides about a thread's part; parts begin 64 bytes more
    than whole pages apart, so that equal places of them fall into different sets of the cache.
    The functions that it calls run one after the other too: behind its own slots is room for the largest of each part.
    """
    if not function.body.blocks:
        return _declared_workspace(function)
    outlined = outlined_in(function)
    parts = [slot_offsets(op.body.block)[-1] for op in outlined.loops]
    largest = max(parts, default=0)
    inner = [workspace(callee) for callee in outlined.callees]
    private = -(-largest // _PAGE) * _PAGE + 64 if largest else 0
    return Workspace(
        slot_offsets(function.body.block)[-1] + max((w.shared for w in inner), default=0),
        max((private, *(w.private for w in inner))),
    )


def _declared_workspace(function: FuncOp) -> Workspace:
    """The attribute `workspace` of a function without a body: the bytes that it shares, and a thread's part."""
    stated = function.attributes.get("workspace")
    sizes = stated.get_values() if isinstance(stated, DenseArrayBase) else (0, 0)
    if len(sizes) != 2 or not all(isinstance(size, int) and size >= 0 for size in sizes):
        name = function.sym_name.data
        sentence = f"the attribute 'workspace' of @{name} is not two sizes: shared, and of each thread"
        raise LoweringError(sentence).at(function)
    return Workspace(int(sizes[0]), int(sizes[1]))


def takes_threads(function: FuncOp) -> bool:
    """Whether a function takes the count of threads as its last argument: it has parallel loops, or calls such; one
    without a body says so by the attribute `parallel`."""
    if not function.body.blocks:
        return "parallel" in function.attributes
    outlined = outlined_in(function)
    return bool(outlined.loops) or any(map(takes_threads, outlined.callees))


@dataclass(frozen=True)
class Outlined:
    """What of a function is in functions of its own: its parallel loops, and the different functions that it calls, in
    the order of their first calls."""

    loops: list[scf.ParallelOp]
    callees: list[FuncOp]


def outlined_in(function: FuncOp) -> Outlined:
    """The parallel loops of a function, and what it calls; most have neither."""
    ops = [op for op in ops_in(function) if type(op) in (scf.ParallelOp, CallOp)]
    loops = [op for op in ops if isinstance(op, scf.ParallelOp)]
    return Outlined(loops, callees(function) if len(loops) < len(ops) else [])


def slots(block: Block) -> list[memref.AllocOp]:
    """The allocs directly in the body of a function, or of a parallel loop, in order."""
    return [op for op in block.ops if isinstance(op, memref.AllocOp)]


def slot_offsets(block: Block) -> list[int]:
    """The byte offset of each slot of a block and, last, the size of all."""
    offsets = [0]
    for slot in slots(block):
        offsets.append(offsets[-1] + -(-buffer_bytes(slot.memref.type) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
    if not fits(offsets[-1]):
        raise LoweringError(f"the temporaries have {offsets[-1]} bytes together; offsets are signed 64-bit integers")
    return offsets


def internal(name: str, parameters: list[str], lines: list[str], attributes: str = "") -> str:
    """The text of an internal function without a result."""
    head = f"define internal void {quoted(name)}({', '.join(parameters)}) {attributes}".rstrip()
    return "\n".join([f"{head} #0 {{", "entry:", *lines, "}", ""])


def buffer_parameter(f: FunctionEmitter, buffer: SSAValue, name: str, written: bool) -> str:
    """The parameter for a buffer of known alignment, with its attributes."""
    f.names[buffer] = f"%{name}"
    size = buffer_bytes(buffer.type)
    facts = f"noalias nonnull align {f.alignments[buffer]}" + (f" dereferenceable({size})" if size else "")
    return f"ptr {facts}{'' if written else ' readonly'} %{name}"


def slot_parameter(f: FunctionEmitter, slot: memref.AllocOp, name: str) -> str:
    """The parameter that a slot becomes."""
    if isinstance(slot.alignment, IntegerAttr) and slot.alignment.value.data > SLOT_ALIGNMENT:
        raise LoweringError(f"a memref.alloc is aligned to at most {SLOT_ALIGNMENT} bytes")
    f.alignments[slot.memref] = SLOT_ALIGNMENT
    return buffer_parameter(f, slot.memref, name, True)


def is_written(buffer: SSAValue) -> bool:
    """Whether anything may write to a buffer, directly or through a view of it."""
    return any(
        is_written(use.operation.results[0]) if is_view(use.operation) else may_write(use) for use in buffer.uses
    )


def is_view(op: Operation) -> bool:
    """Whether an op gives a buffer in the memory of another one."""
    is_cast = isinstance(op, UnrealizedConversionCastOp) and len(op.inputs) == len(op.outputs) == 1
    return is_cast or isinstance(op, memref.ViewOp)


def may_write(use: Use) -> bool:
    """Whether a use of a buffer, that is no view, may write to it."""
    match use.operation:
        case memref.LoadOp() | vector.LoadOp() | vector.MaskedLoadOp() | GatherOp() | PrefetchOp():
            return False
        case LoadOp() | TileLoadOp():
            return False
        case memref.CopyOp():
            return use.index != 0
        case CallOp() as call:
            return _is_written_by(call, use.index)
    return True


def _is_written_by(call: CallOp, position: int) -> bool:
    """Whether a function that is called may write to its argument at a position."""
    callee = called(call)
    if callee.body.blocks:
        return is_written(callee.body.block.args[position])
    return position >= len(call.arguments) - outputs(callee)


def quoted(name: str) -> str:
    """A function's symbol as it stands in the text."""
    safe = re.sub(rb"[^\w.$-]", lambda match: b"\\%02X" % match[0][0], name.encode())
    return f'@"{safe.decode()}"'
