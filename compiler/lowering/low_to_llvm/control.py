"""func and scf: blocks, branches and phis. A loop tests in its header; LLVM rotates it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, Region

from compiler.dialects.functions import SLOT_ALIGNMENT, called, positions
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import literal
from compiler.lowering.low_to_llvm.signature import quoted, symbol, takes_threads
from compiler.lowering.low_to_llvm.types import llvm_type
from compiler.support.errors import LoweringError

MOST_NESTED = 64
"""How deep loops may be nested: LLVM takes cubic time."""


def _constant(f: FunctionEmitter, op: arith.ConstantOp) -> None:
    f.names[op.result] = literal(op.value)


def _return(f: FunctionEmitter, op: func.ReturnOp) -> None:
    if op.arguments:
        raise LoweringError(f"@{f.function.sym_name.data} returns values; results are written to its last arguments")
    leave(f)


def leave(f: FunctionEmitter) -> None:
    """Emit the end of a function."""
    if any("!nontemporal" in line for line in f.lines):
        f.line("fence seq_cst")  # stores past the caches are not ordered with other threads' loads
    f.line("ret void")


def _call(f: FunctionEmitter, op: func.CallOp) -> None:
    """A call passes the workspace behind the caller's own slots, and the count of threads where that is taken."""
    name = op.callee.string_value()
    callee = called(op)
    if op.results:
        raise LoweringError(f"a call of @{name} that returns values has no form in LLVM IR").at(op)
    if _inside_parallel(op):
        raise LoweringError(f"a call of @{name} inside an scf.parallel has no form in LLVM IR").at(op)
    for position in sorted(positions(callee, "aligned")):
        if f.alignments.get(op.arguments[position], 1) < SLOT_ALIGNMENT:
            raise LoweringError(f"argument {position} of @{name} is not aligned to {SLOT_ALIGNMENT} bytes").at(op)
    arguments = [f.typed(value) for value in op.arguments]
    if name not in f.takes_threads:
        f.takes_threads[name] = takes_threads(callee)
    count = ["i32 %threads"] if f.takes_threads[name] else []
    f.line(f"call void {quoted(symbol(name))}({', '.join([*arguments, 'ptr %scratch', *count])})")


def _inside_parallel(op: Operation) -> bool:
    around = op.parent_op()
    while around is not None and not isinstance(around, scf.ParallelOp):
        around = around.parent_op()
    return around is not None


def _yield(f: FunctionEmitter, op: scf.YieldOp) -> None:
    """The op around it reads the yielded values."""


def _yielded(f: FunctionEmitter, block: Block) -> list[str]:
    last = block.last_op
    return [f.use(value) for value in last.operands] if isinstance(last, scf.YieldOp) else []


def _no_buffers(op: Operation) -> None:
    if any(isinstance(value.type, MemRefType) for value in op.results):
        raise LoweringError(f"'{op.name}' carries a buffer, which has no form in LLVM IR")


def _check_depth(op: scf.ForOp) -> None:
    depth, around = 1, op.parent_op()
    while around is not None:
        depth += isinstance(around, scf.ForOp)
        around = around.parent_op()
    if depth > MOST_NESTED:
        raise LoweringError(f"loops are nested {depth} deep, of {MOST_NESTED} at most").at(op)


def _for(f: FunctionEmitter, op: scf.ForOp) -> None:
    _no_buffers(op)
    _check_depth(op)
    head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
    before = f.label
    iv, *carried = op.body.block.args
    for argument in op.body.block.args:
        f.names[argument] = f"%{f.fresh('i' if argument is iv else 'c')}"
    f.line(f"br label %{head}")
    f.start(head)
    phis = len(f.lines)
    test = f.temporary(f"icmp slt {f.typed(iv)}, {f.use(op.ub)}")
    f.line(f"br i1 {test}, label %{body}, label %{done}")
    f.start(body)
    with f.scope():
        f.block(op.body.block)
    following = [
        f.temporary(f"add {_wraps(f, op)} {f.typed(iv)}, {f.use(op.step)}"),
        *_yielded(f, op.body.block),
    ]
    f.line(f"br label %{head}{_metadata(op)}")
    starts = [f.use(value) for value in (op.lb, *op.iter_args)]
    f.lines[phis:phis] = [
        f"  {f.use(value)} = phi {llvm_type(value.type)} [ {start}, %{before} ], [ {end}, %{f.label} ]"
        for value, start, end in zip((iv, *carried), starts, following, strict=True)
    ]
    f.start(done)
    for value, argument in zip(op.results, carried, strict=True):
        f.names[value] = f.use(argument)


def _metadata(op: scf.ForOp) -> str:
    """Metadata for loops that LLVM must leave alone: a vectorized loop is neither unrolled nor vectorized again."""
    values = (value for inner in op.body.walk() for value in (*inner.operands, *inner.results))
    if any(isinstance(value.type, VectorType) for value in values):
        return ", !llvm.loop !2"
    return ", !llvm.loop !0" if stays_scalar(op) else ""


def loop_metadata(text: str) -> Iterator[str]:
    """The text of a module with the metadata of its loops: !0 for loops that LLVM must not vectorize, !2 for loops that
    it must not unroll either. Each loop gets a node of its own, since LLVM tells loops apart by them."""
    nodes: list[str] = []

    def own(reference: re.Match[str]) -> str:
        number = len(nodes) + 2
        kept = "!0, !1" if reference[1] == "2" else "!0"
        nodes.append(f"!{number} = distinct !{{!{number}, {kept}}}")
        return f"!llvm.loop !{number}"

    yield re.sub(r"!llvm\.loop !([02])\b", own, text)
    if nodes:
        yield '!0 = !{!"llvm.loop.vectorize.enable", i1 false}'
        yield '!1 = !{!"llvm.loop.unroll.disable"}'
        yield from nodes


def stays_scalar(op: scf.ForOp | scf.ParallelOp) -> bool:
    """Whether LLVM must leave a loop scalar.

    Where quotients and remainders of its variable make up an index that steps by one, LLVM 22.1 takes a conditional
    access for a contiguous one, and its address from a lane that is masked off.
    """
    inner = list(op.body.walk())
    divides = any(isinstance(i, arith.DivUIOp | arith.RemUIOp | arith.FloorDivSIOp) for i in inner)
    return divides and any(isinstance(i, scf.IfOp) and _accesses(i) for i in inner)


def _accesses(op: scf.IfOp) -> bool:
    return any(isinstance(inner, memref.LoadOp | memref.StoreOp) for inner in op.walk())


def _wraps(f: FunctionEmitter, op: scf.ForOp) -> str:
    start = f.forms.of(op.lb)
    return "nuw nsw" if start.is_constant and start.constant >= 0 else "nsw"


def _if(f: FunctionEmitter, op: scf.IfOp) -> None:
    _no_buffers(op)
    done = f.fresh("endif")
    arms = [(f.fresh(stem), region.block) for stem, region in _regions(op)]
    else_label = arms[1][0] if len(arms) == 2 else done
    f.line(f"br i1 {f.use(op.cond)}, label %{arms[0][0]}, label %{else_label}")
    ends = [_arm(f, label, block, done) for label, block in arms]
    f.start(done)
    for number, value in enumerate(op.results):
        incoming = ", ".join(f"[ {values[number]}, %{label} ]" for label, values in ends)
        f.set(value, f"phi {llvm_type(value.type)} {incoming}")


def _regions(op: scf.IfOp) -> list[tuple[str, Region]]:
    both = (("then", op.true_region), ("else", op.false_region))
    return [(stem, region) for stem, region in both if region.blocks]


def _arm(f: FunctionEmitter, label: str, block: Block, done: str) -> tuple[str, list[str]]:
    """One side of a branch; the label that it ends at, and its values there."""
    f.start(label)
    with f.scope():
        f.block(block)
    f.line(f"br label %{done}")
    return f.label, _yielded(f, block)


CONTROL: Handlers = {
    arith.ConstantOp: _constant,
    func.ReturnOp: _return,
    func.CallOp: _call,
    scf.YieldOp: _yield,
    scf.ForOp: _for,
    scf.IfOp: _if,
}
