"""One function: the entry that callers see, and the body with noalias parameters, cut into parts where it is long.

LLVM's time grows faster than a function: a pass that changes one loop looks at all others. So a body of many nests
becomes `NAME.body`, which calls `NAME.body.partN` in order. The parameters of a part, noalias too, are what its nests
use of the arguments, the slots, and the values before it.
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
from compiler.lowering.low_to_llvm.captured import Captured, is_repeated
from compiler.lowering.low_to_llvm.control import leave
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
"""The fewest loops of a part, but for the last."""


def emit_function(function: FuncOp, handlers: Handlers) -> tuple[str, set[str]]:
    """The text of a function's entry, body, parts and outlined parallel loops, and the external functions that they
    need."""
    name = symbol(function.sym_name.data)
    if not function.body.blocks and not function.function_type.outputs:
        return _declaration(function), set()
    if len(function.body.blocks) != 1:
        raise LoweringError(f"@{name} has {len(function.body.blocks)} blocks, expected one")
    f = FunctionEmitter(function, handlers)
    parameters = [_parameter(f, i, argument) for i, argument in enumerate(function.args)]
    parameters += [slot_parameter(f, slot, f"s{i}") for i, slot in enumerate(slots(function.body.block))]
    team = _team(function)
    parameters += [f"{facts} {name}" for facts, name in team.parameters]
    _emit_body(f, function.body.block, team)
    body = internal(name + ".body", parameters, [*f.allocas, *f.lines], "noinline")
    return "\n".join([_entry(function, team), body, *f.outlined]), f.externals


def _declaration(function: FuncOp) -> str:
    """The text of a function that is elsewhere."""
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
    """Emit a function of some ops, and the call of it."""
    part = FunctionEmitter(f.function, f.handlers)
    part.externals, part.outlined = f.externals, f.outlined
    captured = Captured(ops, f, part)
    part.ops(ops)
    leave(part)
    needs_team = any(isinstance(inner, scf.ParallelOp | CallOp) for op in ops for inner in ops_in(op))
    passed = team.parameters if needs_team else []
    parameters = [*captured.parameters, *(f"{facts} {register}" for facts, register in passed)]
    part.outlined.append(internal(name, parameters, [*part.allocas, *part.lines], "noinline"))
    given = [f"{facts.partition(' ')[0]} {register}" for facts, register in passed]
    f.line(f"call void {quoted(name)}({', '.join([*captured.arguments, *given])})")


def _cut(ops: Sequence[Operation], block: Block) -> tuple[list[Operation], list[list[Operation]]]:
    """The ops before all parts, and the ops of each part. No part uses a value of another."""
    shared: list[Operation] = []
    parts: list[list[Operation]] = [[]]
    available = set[SSAValue](block.args)
    awaited = set[Operation]()  # ops still to come that use what the current part computes
    loops = 0
    for op in ops:
        if _is_shared(op) and available.issuperset(op.operands):
            shared.append(op)
            available.update(op.results)
            continue
        if loops >= PART_LOOPS and not awaited:
            parts.append([])
            loops = 0
        parts[-1].append(op)
        loops += _loops(op)
        awaited |= _users(op, block)
        awaited.discard(op)
    return shared, [part for part in parts if part]


def _is_shared(op: Operation) -> bool:
    """Whether an op may be computed before all others: it reads no memory."""
    return isinstance(op, arith.ConstantOp | memref.AllocOp | memref.AllocaOp) or is_repeated(op)


def _users(op: Operation, block: Block) -> set[Operation]:
    """The ops of a block that use, directly or in their regions, a value of one of its ops."""
    users = (block.find_ancestor_op_in_block(use.operation) for value in op.results for use in value.uses)
    return {user for user in users if user is not None}


def _loops(op: Operation) -> int:
    return sum(type(inner) in (scf.ForOp, scf.ParallelOp) for inner in ops_in(op))


@dataclass(frozen=True)
class _Team:
    """What calls and parallel loops need beside the arguments and the slots: whether the workspace behind the
    function's own slots, where in it the parts of the threads begin, and whether the count of threads."""

    scratch: bool
    private: int | None
    threads: bool

    @property
    def parameters(self) -> list[tuple[str, str]]:
        """The parameters of a body, each as its type with facts and its name."""
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
