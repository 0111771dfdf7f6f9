"""Symbols, parameters with their attributes, and the workspace of functions."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnrealizedConversionCastOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue, Use

from compiler.affine.limits import fits
from compiler.dialects.calls import called, callees
from compiler.dialects.functions import SLOT_ALIGNMENT, outputs
from compiler.dialects.tile_intrinsics import LoadOp, TileLoadOp
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.vector import GatherOp
from compiler.dialects.upstream.walk import ops_in
from compiler.lowering.low_to_llvm.function import FunctionEmitter
from compiler.lowering.low_to_llvm.types import buffer_bytes
from compiler.support.errors import LoweringError

_PAGE = 4096
"""Addresses at multiples of this distance are in the same set of L1."""

_RESERVED = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[tl]gamma"
    r"|fma|fmod|remainder|ldexp|frexp|modf|fabs|floor|ceil|l?l?round|roundeven|trunc|l?l?rint|nearbyint"
    r"|copysign|f(max|min)(imum)?(_num)?)[fl]?|mem(cpy|move|set|cmp)|bzero|bcmp|__.*|llvm\..*"
)

_PLAIN = re.compile(r"[A-Za-z_][\w.$]*", re.ASCII)
"""Names that assemblers read without quotes."""


def symbol(name: str) -> str:
    """Return a function's symbol: its name; with the prefix `strata.` if LLVM recognises the name, or if an assembler
    would need quotes: then each character that needs them becomes its code in hex between dots."""
    if _PLAIN.fullmatch(name):
        return f"strata.{name}" if _RESERVED.fullmatch(name) else name
    return "strata." + "".join(c if re.match(r"[\w.]", c, re.ASCII) else f".{ord(c):x}." for c in name)


@dataclass(frozen=True)
class Workspace:
    """The scratch memory of a function, in bytes: the shared part, then a private part for each thread, all of one
    size."""

    shared: int
    private: int

    def size(self, threads: int) -> int:
        """Return the total bytes for a thread count."""
        return self.shared + threads * self.private


def workspace(function: FuncOp) -> Workspace:
    """Return the workspace of a function; that of a declaration is its attribute `workspace`, without it (0, 0).
    Parallel loops run in sequence, so that the largest determines a thread's part. The distance of parts, if not 0, is
    whole pages and 64 bytes, so that equal offsets in them fall into different sets of L1. Callees run in sequence,
    too: behind the function's own slots is room for the largest workspace of a callee."""
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
    """Read the attribute `workspace` of a function without a body: the shared bytes, and a thread's part; (0, 0)
    without it. Raises LoweringError for a malformed one."""
    attribute = function.attributes.get("workspace")
    sizes = attribute.get_values() if isinstance(attribute, DenseArrayBase) else (0, 0)
    if len(sizes) != 2 or not all(isinstance(size, int) and size >= 0 for size in sizes):
        name = function.sym_name.data
        sentence = f"the attribute 'workspace' of @{name} is not two sizes: shared, and of each thread"
        raise LoweringError(sentence).at(function)
    return Workspace(int(sizes[0]), int(sizes[1]))


def takes_threads(function: FuncOp) -> bool:
    """Return whether a function takes the thread count as its last argument: it or a callee has parallel loops, or it
    has no body and the attribute `parallel`."""
    if not function.body.blocks:
        return "parallel" in function.attributes
    outlined = outlined_in(function)
    return bool(outlined.loops) or any(map(takes_threads, outlined.callees))


@dataclass(frozen=True)
class Outlined:
    """The parallel loops of a function, which are outlined, and its callees, each once, in the order of first calls."""

    loops: list[scf.ParallelOp]
    callees: list[FuncOp]


def outlined_in(function: FuncOp) -> Outlined:
    """Return the parallel loops and callees of a function."""
    ops = [op for op in ops_in(function) if type(op) in (scf.ParallelOp, CallOp)]
    loops = [op for op in ops if isinstance(op, scf.ParallelOp)]
    return Outlined(loops, callees(function) if len(loops) < len(ops) else [])


def slots(block: Block) -> list[memref.AllocOp]:
    """Return the allocs directly in the body of a function or of a parallel loop, in order."""
    return [op for op in block.ops if isinstance(op, memref.AllocOp)]


def slot_offsets(block: Block) -> list[int]:
    """Return the byte offset of each slot of a block, a multiple of SLOT_ALIGNMENT, and, last, their total size. Raises
    LoweringError for a total of 2^63 or more."""
    offsets = [0]
    for slot in slots(block):
        offsets.append(offsets[-1] + -(-buffer_bytes(slot.memref.type) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
    if not fits(offsets[-1]):
        raise LoweringError(f"the temporaries have {offsets[-1]} bytes together; offsets are signed 64-bit integers")
    return offsets


def internal(name: str, parameters: list[str], lines: list[str], attributes: str = "") -> str:
    """Return the text of an internal function without a result, with LLVM's `attributes` and `lines` as its body; a
    parameter is a type, attributes and a register. `lines` follow the label of the first basic block."""
    head = f"define internal void {quoted(name)}({', '.join(parameters)}) {attributes}".rstrip()
    return "\n".join([f"{head} #0 {{", "entry:", *lines, "}", ""])


def buffer_parameter(f: FunctionEmitter, buffer: SSAValue, name: str, written: bool) -> str:
    """Name a buffer of known alignment in `f`; return its parameter with attributes, `readonly` unless `written`."""
    f.names[buffer] = f"%{name}"
    size = buffer_bytes(buffer.type)
    facts = f"noalias nonnull align {f.alignments[buffer]}" + (f" dereferenceable({size})" if size else "")
    return f"ptr {facts}{'' if written else ' readonly'} %{name}"


def slot_parameter(f: FunctionEmitter, slot: memref.AllocOp, name: str) -> str:
    """Name a slot in `f`; return its parameter. Raises LoweringError for an alignment above SLOT_ALIGNMENT."""
    if isinstance(slot.alignment, IntegerAttr) and slot.alignment.value.data > SLOT_ALIGNMENT:
        raise LoweringError(f"a memref.alloc is aligned to at most {SLOT_ALIGNMENT} bytes")
    f.alignments[slot.memref] = SLOT_ALIGNMENT
    return buffer_parameter(f, slot.memref, name, True)


def is_written(buffer: SSAValue) -> bool:
    """Return whether an op may write to a buffer, directly, through a view or in a callee."""
    return any(
        is_written(use.operation.results[0]) if is_view(use.operation) else may_write(use) for use in buffer.uses
    )


def is_view(op: Operation) -> bool:
    """Return whether the result of an op is a view of its operand."""
    is_cast = isinstance(op, UnrealizedConversionCastOp) and len(op.inputs) == len(op.outputs) == 1
    return is_cast or isinstance(op, memref.ViewOp)


def may_write(use: Use) -> bool:
    """Return whether a use of a buffer, other than a view, may write to it; True for an op that is not known to only
    read. A declared callee writes to its last arguments, its outputs."""
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
    callee = called(call)
    if callee.body.blocks:
        return is_written(callee.body.block.args[position])
    return position >= len(call.arguments) - outputs(callee)


def quoted(name: str) -> str:
    """Return a symbol as an operand of LLVM IR: `@` and the name in quotes, with escapes."""
    safe = re.sub(rb"[^\w.$-]", lambda match: b"\\%02X" % match[0][0], name.encode())
    return f'@"{safe.decode()}"'
