"""The two functions that one becomes: the entry that callers see, and the body with noalias parameters."""

from __future__ import annotations

import re

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import IntegerAttr, MemRefType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue

from compiler.errors import LoweringError
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.types import buffer_bytes, buffer_type, byte_size, llvm_type

SLOT_ALIGNMENT = 64
"""What the workspace and every slot in it is aligned to, in bytes."""

_RESERVED = re.compile(
    r"(a?(sin|cos|tan)h?|atan2|sincos|exp(2|10|m1)?|log(2|10|1p|b)?|pow|sqrt|cbrt|hypot|erfc?|[tl]gamma"
    r"|fma|fmod|remainder|ldexp|frexp|modf|fabs|floor|ceil|l?l?round|roundeven|trunc|l?l?rint|nearbyint"
    r"|copysign|f(max|min)(imum)?(_num)?)[fl]?|mem(cpy|move|set|cmp)|bzero|bcmp|__.*|llvm\..*"
)


def symbol(name: str) -> str:
    """A function's symbol: its name in ASCII, with a prefix if LLVM itself may mean something by it."""
    plain = name.encode("ascii", "backslashreplace").decode()
    return f"strata.{plain}" if _RESERVED.fullmatch(plain) else plain


def slots(function: FuncOp) -> list[memref.AllocOp]:
    """The buffers that the workspace holds: the allocs at the function's top level, in order."""
    return [op for op in function.body.block.ops if isinstance(op, memref.AllocOp)]


def slot_offsets(function: FuncOp) -> list[int]:
    """The byte offset of each slot in the workspace and, last, the workspace's size."""
    offsets = [0]
    for slot in slots(function):
        offsets.append(offsets[-1] + -(-buffer_bytes(slot.memref.type) // SLOT_ALIGNMENT) * SLOT_ALIGNMENT)
    return offsets


def emit_function(function: FuncOp, handlers: Handlers) -> tuple[str, set[str]]:
    """The text of a function's entry and body, and the external functions that they need."""
    name = symbol(function.sym_name.data)
    if len(function.body.blocks) != 1:
        raise LoweringError(f"@{name} has {len(function.body.blocks)} blocks, expected one")
    f = FunctionEmitter(function, handlers)
    parameters = [_parameter(f, i, argument) for i, argument in enumerate(function.args)]
    parameters += [_slot(f, i, slot) for i, slot in enumerate(slots(function))]
    f.block(function.body.block)
    head = f"define internal void {_quoted(name + '.body')}({', '.join(parameters)}) noinline #0 {{"
    return "\n".join([_entry(function), head, "entry:", *f.allocas, *f.lines, "}", ""]), f.externals


def _parameter(f: FunctionEmitter, number: int, argument: BlockArgument) -> str:
    f.names[argument] = f"%a{number}"
    if not isinstance(argument.type, MemRefType):
        return f"{llvm_type(argument.type)} %a{number}"
    size = byte_size(buffer_type(argument.type).element_type)
    f.alignments[argument] = size
    facts = _facts(size, buffer_bytes(argument.type))
    return f"ptr {facts}{'' if is_written(argument) else ' readonly'} %a{number}"


def _slot(f: FunctionEmitter, number: int, slot: memref.AllocOp) -> str:
    if isinstance(slot.alignment, IntegerAttr) and slot.alignment.value.data > SLOT_ALIGNMENT:
        raise LoweringError(f"a memref.alloc is aligned to at most {SLOT_ALIGNMENT} bytes")
    f.names[slot.memref] = f"%s{number}"
    f.alignments[slot.memref] = SLOT_ALIGNMENT
    return f"ptr {_facts(SLOT_ALIGNMENT, buffer_bytes(slot.memref.type))} %s{number}"


def _facts(alignment: int, size: int) -> str:
    return f"noalias nonnull align {alignment}" + (f" dereferenceable({size})" if size else "")


def _entry(function: FuncOp) -> str:
    name = symbol(function.sym_name.data)
    arguments = [f"{llvm_type(argument.type)} %a{i}" for i, argument in enumerate(function.args)]
    lines = [f"define void {_quoted(name)}({', '.join([*arguments, 'ptr %workspace'])}) #0 {{"]
    for number, offset in enumerate(slot_offsets(function)[:-1]):
        lines.append(f"  %s{number} = getelementptr inbounds i8, ptr %workspace, i64 {offset}")
        arguments.append(f"ptr %s{number}")
    call = f"  call void {_quoted(name + '.body')}({', '.join(arguments)})"
    return "\n".join([*lines, call, "  ret void", "}", ""])


def is_written(buffer: SSAValue) -> bool:
    """Whether anything may write to a buffer, directly or through a view of it."""
    for use in buffer.uses:
        match use.operation:
            case memref.LoadOp() | vector.LoadOp() | vector.MaskedLoadOp():
                continue
            case memref.CopyOp() if use.index == 0:
                continue
            case memref.ViewOp(result=view) if not is_written(view):
                continue
        return True
    return False


def _quoted(name: str) -> str:
    safe = re.sub(rb"[^\w.$-]", lambda found: b"\\%02X" % found[0][0], name.encode())
    return f'@"{safe.decode()}"'
