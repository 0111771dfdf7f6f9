"""One function: the entry that callers see, and the body with noalias parameters, split if it is long.

LLVM's compile time is superlinear in a function's size: a pass that changes one loop visits all others. So a body of
many nests becomes `NAME.body`, which calls `NAME.body.partN` in order. The parameters of a part, noalias too, are the
arguments, slots and earlier values that its nests use.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from compiler.dialects.functions import SLOT_ALIGNMENT, positions
from compiler.dialects.upstream.walk import ops_in
from compiler.lowering.low_to_llvm.captured import Captured, is_recomputed
from compiler.lowering.low_to_llvm.control import emit_return
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.signature import (
    buffer_parameter,
    internal,
    is_written,
    outlined_in,
    quoted,
    slot_offsets,
    slot_parameter,
    slots,
    symbol,
    takes_threads,
    workspace,
)
from compiler.lowering.low_to_llvm.types import buffer_type, byte_size, llvm_type
from compiler.support.errors import LoweringError

MOST_LOOPS = 64
"""A body of more loops is cut."""
PART_LOOPS = 32
"""The fewest loops of a part, except the last."""


def emit_function(function: FuncOp, handlers: Handlers) -> tuple[str, set[str]]:
    """Emit a function: its entry, body, parts and parallel loops, or a declaration if it has no body. Return the text,
    and the declarations of externals that it needs. Raises LoweringError for several blocks, a declaration with
    results, and an op or a type without a form in LLVM IR."""
    name = symbol(function.sym_name.data)
    if not function.body.blocks and not function.function_type.outputs:
        return _declaration(function), set()
    if len(function.body.blocks) != 1:
        raise LoweringError(f"@{name} has {len(function.body.blocks)} blocks, expected one")
    f = FunctionEmitter(function, handlers)
    parameters = [_parameter(f, i, argument) for i, argument in enumerate(function.args)]
    parameters += [slot_parameter(f, slot, f"s{i}") for i, slot in enumerate(slots(function.body.block))]
    team = _team(function)
    parameters += [f"{attributes} {name}" for attributes, name in team.parameters]
    _emit_body(f, function.body.block, team)
    body = internal(name + ".body", parameters, [*f.allocas, *f.lines], "noinline")
    return "\n".join([_entry(function, team), body, *f.outlined]), f.externals


def _declaration(function: FuncOp) -> str:
    types = [llvm_type(type) for type in function.function_type.inputs]
    count = ["i32"] if takes_threads(function) else []
    return f"declare void {quoted(symbol(function.sym_name.data))}({', '.join([*types, 'ptr', *count])})\n"


def _emit_body(f: FunctionEmitter, block: Block, team: _Team) -> None:
    ops = list(block.ops)
    if sum(map(_loops, ops)) <= MOST_LOOPS:
        f.block(block)
        return
    shared, parts = _cut(ops[:-1], block)
    f.ops(shared)
    for number, part in enumerate(parts):
        _emit_part(f, part, team, f"{symbol(f.function.sym_name.data)}.body.part{number}")
    f.ops(ops[-1:])


def _emit_part(f: FunctionEmitter, ops: Sequence[Operation], team: _Team, name: str) -> None:
    """Outline ops into the function `name`, and emit the call of it."""
    part = FunctionEmitter(f.function, f.handlers)
    part.externals, part.outlined = f.externals, f.outlined
    captured = Captured(ops, f, part)
    part.ops(ops)
    emit_return(part)
    needs_team = any(isinstance(inner, scf.ParallelOp | CallOp) for op in ops for inner in ops_in(op))
    team_parameters = team.parameters if needs_team else []
    parameters = [*captured.parameters, *(f"{attributes} {register}" for attributes, register in team_parameters)]
    part.outlined.append(internal(name, parameters, [*part.allocas, *part.lines], "noinline"))
    team_arguments = [f"{attributes.partition(' ')[0]} {register}" for attributes, register in team_parameters]
    f.line(f"call void {quoted(name)}({', '.join([*captured.arguments, *team_arguments])})")


def _cut(ops: Sequence[Operation], block: Block) -> tuple[list[Operation], list[list[Operation]]]:
    """Return the ops to compute before all parts, and each part's ops, in order; no part uses a value of another part.
    A part has at least PART_LOOPS loops, except the last."""
    shared: list[Operation] = []
    parts: list[list[Operation]] = [[]]
    available = set[SSAValue](block.args)
    pending_users = set[Operation]()  # later ops that use values of the current part
    loops = 0
    for op in ops:
        if _is_shared(op) and available.issuperset(op.operands):
            shared.append(op)
            available.update(op.results)
            continue
        if loops >= PART_LOOPS and not pending_users:
            parts.append([])
            loops = 0
        parts[-1].append(op)
        loops += _loops(op)
        pending_users |= _users(op, block)
        pending_users.discard(op)
    return shared, [part for part in parts if part]


def _is_shared(op: Operation) -> bool:
    """Return whether an op is computed before all parts if its operands are: a constant, an alloc or alloca, or an op
    that `is_recomputed`."""
    return isinstance(op, arith.ConstantOp | memref.AllocOp | memref.AllocaOp) or is_recomputed(op)


def _users(op: Operation, block: Block) -> set[Operation]:
    """Return the ops of a block that use a result of an op, directly or in their regions."""
    users = (block.find_ancestor_op_in_block(use.operation) for value in op.results for use in value.uses)
    return {user for user in users if user is not None}


def _loops(op: Operation) -> int:
    return sum(type(inner) in (scf.ForOp, scf.ParallelOp) for inner in ops_in(op))


@dataclass(frozen=True)
class _Team:
    """Further parameters for calls and parallel loops. `scratch`: whether there is a pointer to the workspace behind
    the function's own slots; `private`: the offset in bytes of the threads' parts in the workspace, None without such
    parts; `threads`: whether there is a thread count."""

    scratch: bool
    private: int | None
    threads: bool

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of a body, each as a type with attributes and a name."""
        parameters = [("ptr", "%scratch")] if self.scratch else []
        if self.private is not None:
            parameters.append((f"ptr noalias nonnull align {SLOT_ALIGNMENT}", "%private"))
        return [*parameters, *([("i32", "%threads")] if self.threads else [])]


def _team(function: FuncOp) -> _Team:
    sizes, outlined = workspace(function), outlined_in(function)
    private = sizes.shared if sizes.private and outlined.loops else None
    return _Team(bool(outlined.callees), private, takes_threads(function))


def _parameter(f: FunctionEmitter, number: int, argument: BlockArgument) -> str:
    f.names[argument] = f"%a{number}"
    if not isinstance(argument.type, MemRefType):
        return f"{llvm_type(argument.type)} %a{number}"
    size = byte_size(buffer_type(argument.type).element_type)
    is_aligned = argument.index in positions(f.function, "aligned")
    f.alignments[argument] = SLOT_ALIGNMENT if is_aligned else size
    return buffer_parameter(f, argument, f"a{number}", is_written(argument))


def _entry(function: FuncOp, team: _Team) -> str:
    name = symbol(function.sym_name.data)
    arguments = [f"{llvm_type(argument.type)} %a{i}" for i, argument in enumerate(function.args)]
    count = ["i32 %threads"] if team.threads else []
    lines = [f"define void {quoted(name)}({', '.join([*arguments, 'ptr %workspace', *count])}) #0 {{"]
    *offsets, end = slot_offsets(function.body.block)
    for number, offset in enumerate(offsets):
        lines.append(f"  %s{number} = getelementptr inbounds i8, ptr %workspace, i64 {offset}")
        arguments.append(f"ptr %s{number}")
    if team.scratch:
        lines.append(f"  %scratch = getelementptr i8, ptr %workspace, i64 {end}")
        arguments.append("ptr %scratch")
    if team.private is not None:
        lines.append(f"  %private = getelementptr inbounds i8, ptr %workspace, i64 {team.private}")
        arguments.append("ptr %private")
    call = f"  call void {quoted(name + '.body')}({', '.join([*arguments, *count])})"
    return "\n".join([*lines, call, "  ret void", "}", ""])
