"""The two functions that one becomes: the entry that callers see, the body with noalias parameters; the workspace."""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects import memref, scf, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from compiler.affine.limits import fits
from compiler.dialects.functions import SLOT_ALIGNMENT, positions
from compiler.dialects.tile_intrinsics import LoadOp, TileLoadOp
from compiler.dialects.upstream.memref import PrefetchOp
from compiler.dialects.upstream.vector import GatherOp
from compiler.errors import LoweringError
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.types import buffer_bytes, buffer_type, byte_size, llvm_type

_PAGE = 4096
"""Addresses that are a multiple of this apart fall into the same set of the first cache."""

_RESERVED = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[tl]gamma"
    r"|fma|fmod|remainder|ldexp|frexp|modf|fabs|floor|ceil|l?l?round|roundeven|trunc|l?l?rint|nearbyint"
    r"|copysign|f(max|min)(imum)?(_num)?)[fl]?|mem(cpy|move|set|cmp)|bzero|bcmp|__.*|llvm\..*"
)


def symbol(name: str) -> str:
    """A function's symbol: its name in ASCII, with a prefix if LLVM itself may mean something by it."""
    plain = name.encode("ascii", "backslashreplace").decode()
    return f"strata.{plain}" if _RESERVED.fullmatch(plain) else plain


@dataclass(frozen=True)
class Workspace:
    """What a function needs of scratch memory, in bytes: what its threads share, then a part for each of them."""

    shared: int
    private: int

    def size(self, threads: int) -> int:
        """The bytes for that many threads."""
        return self.shared + threads * self.private


def workspace(function: FuncOp) -> Workspace:
    """The workspace of a function.

    Parallel loops run one after the other, so the largest decides about a thread's part; parts begin 64 bytes more
    than whole pages apart, so that equal places of them fall into different sets of the cache.
    """
    parts = [slot_offsets(op.body.block)[-1] for op in parallel_loops(function)]
    largest = max(parts, default=0)
    return Workspace(slot_offsets(function.body.block)[-1], -(-largest // _PAGE) * _PAGE + 64 if largest else 0)


def parallel_loops(function: FuncOp) -> list[scf.ParallelOp]:
    """The parallel loops of a function; where there are any, it takes the count of threads as its last argument."""
    return [op for op in function.walk() if isinstance(op, scf.ParallelOp)]


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


def emit_function(function: FuncOp, handlers: Handlers) -> tuple[str, set[str]]:
    """The text of a function's entry, body and outlined parallel loops, and the external functions that they need."""
    name = symbol(function.sym_name.data)
    if len(function.body.blocks) != 1:
        raise LoweringError(f"@{name} has {len(function.body.blocks)} blocks, expected one")
    f = FunctionEmitter(function, handlers)
    parameters = [_parameter(f, i, argument) for i, argument in enumerate(function.args)]
    parameters += [slot_parameter(f, slot, f"s{i}") for i, slot in enumerate(slots(function.body.block))]
    parameters += _thread_parameters(function)
    f.block(function.body.block)
    body = internal(name + ".body", parameters, [*f.allocas, *f.lines], "noinline")
    return "\n".join([_entry(function), body, *f.outlined]), f.externals


def internal(name: str, parameters: list[str], lines: list[str], attributes: str = "") -> str:
    """The text of an internal function without a result."""
    head = f"define internal void {quoted(name)}({', '.join(parameters)}) {attributes}".rstrip()
    return "\n".join([f"{head} #0 {{", "entry:", *lines, "}", ""])


def _thread_parameters(function: FuncOp) -> list[str]:
    """What parallel loops need: the first thread's part of the workspace, and the count of threads."""
    if not parallel_loops(function):
        return []
    part = f"ptr noalias nonnull align {SLOT_ALIGNMENT} %private"
    return [*([part] if workspace(function).private else []), "i32 %threads"]


def _parameter(f: FunctionEmitter, number: int, argument: BlockArgument) -> str:
    f.names[argument] = f"%a{number}"
    if not isinstance(argument.type, MemRefType):
        return f"{llvm_type(argument.type)} %a{number}"
    size = byte_size(buffer_type(argument.type).element_type)
    is_aligned = argument.index in positions(f.function, "aligned")
    f.alignments[argument] = SLOT_ALIGNMENT if is_aligned else size
    return buffer_parameter(f, argument, f"a{number}", is_written(argument))


def buffer_parameter(f: FunctionEmitter, buffer: SSAValue, name: str, written: bool) -> str:
    """The parameter that a buffer of known alignment becomes, with what is known of it."""
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


def _entry(function: FuncOp) -> str:
    name = symbol(function.sym_name.data)
    arguments = [f"{llvm_type(argument.type)} %a{i}" for i, argument in enumerate(function.args)]
    count = ["i32 %threads"] if parallel_loops(function) else []
    lines = [f"define void {quoted(name)}({', '.join([*arguments, 'ptr %workspace', *count])}) #0 {{"]
    for number, offset in enumerate(slot_offsets(function.body.block)[:-1]):
        lines.append(f"  %s{number} = getelementptr inbounds i8, ptr %workspace, i64 {offset}")
        arguments.append(f"ptr %s{number}")
    sizes = workspace(function)
    if sizes.private:
        lines.append(f"  %private = getelementptr inbounds i8, ptr %workspace, i64 {sizes.shared}")
        arguments.append("ptr %private")
    call = f"  call void {quoted(name + '.body')}({', '.join([*arguments, *count])})"
    return "\n".join([*lines, call, "  ret void", "}", ""])


def is_written(buffer: SSAValue, within: Operation | None = None) -> bool:
    """Whether anything, or anything inside an op, may write to a buffer, directly or through a view of it."""
    for use in buffer.uses:
        if within is not None and not (isinstance(use.operation, memref.ViewOp) or within.is_ancestor(use.operation)):
            continue
        match use.operation:
            case memref.LoadOp() | vector.LoadOp() | vector.MaskedLoadOp() | GatherOp() | PrefetchOp():
                continue
            case LoadOp() | TileLoadOp():
                continue
            case memref.CopyOp() if use.index == 0:
                continue
            case memref.ViewOp(result=view) if not is_written(view, within):
                continue
        return True
    return False


def quoted(name: str) -> str:
    """A function's symbol as it stands in the text."""
    safe = re.sub(rb"[^\w.$-]", lambda found: b"\\%02X" % found[0][0], name.encode())
    return f'@"{safe.decode()}"'
