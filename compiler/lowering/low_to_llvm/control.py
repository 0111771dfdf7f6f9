"""func and scf: blocks, branches and phis. The header of a loop has its test; LLVM rotates it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import MemRefType, VectorType
from xdsl.ir import Block, Operation, Region

from compiler.dialects.calls import called
from compiler.dialects.functions import SLOT_ALIGNMENT, positions
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.literals import literal
from compiler.lowering.low_to_llvm.signature import quoted, symbol, takes_threads
from compiler.lowering.low_to_llvm.types import llvm_type
from compiler.support.errors import LoweringError

MAX_DEPTH = 64
"""The limit of loop depth: LLVM takes cubic time."""


def _constant(f: FunctionEmitter, op: arith.ConstantOp) -> None:
    f.names[op.result] = literal(op.value)


def _return(f: FunctionEmitter, op: func.ReturnOp) -> None:
    if op.arguments:
        raise LoweringError(f"@{f.function.sym_name.data} returns values; results are written to its last arguments")
    emit_return(f)


def emit_return(f: FunctionEmitter) -> None:
    """Emit the return of a function, after a fence if its own lines, not those of outlined functions, have nontemporal
    stores."""
    if any("!nontemporal" in line for line in f.lines):
        f.line("fence seq_cst")  # non-temporal stores are weakly ordered
    f.line("ret void")


def _call(f: FunctionEmitter, op: func.CallOp) -> None:
    """Emit a call. The callee's workspace is behind the caller's slots; the thread count is passed if the callee has
    that parameter. Raises LoweringError for a call with results, in a parallel loop, or of a misaligned argument."""
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
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, scf.ParallelOp):
        parent = parent.parent_op()
    return parent is not None


def _yield(f: FunctionEmitter, op: scf.YieldOp) -> None:
    """Emit nothing: the enclosing op reads the yielded values."""


def _yielded(f: FunctionEmitter, block: Block) -> list[str]:
    last = block.last_op
    return [f.use(value) for value in last.operands] if isinstance(last, scf.YieldOp) else []


def _check_no_buffers(op: Operation) -> None:
    if any(isinstance(value.type, MemRefType) for value in op.results):
        raise LoweringError(f"'{op.name}' carries a buffer, which has no form in LLVM IR")


def _check_depth(op: scf.ForOp) -> None:
    depth, parent = 1, op.parent_op()
    while parent is not None:
        depth += isinstance(parent, scf.ForOp)
        parent = parent.parent_op()
    if depth > MAX_DEPTH:
        raise LoweringError(f"loops are nested {depth} deep, of {MAX_DEPTH} at most").at(op)


def _for(f: FunctionEmitter, op: scf.ForOp) -> None:
    _check_no_buffers(op)
    _check_depth(op)
    header, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
    entry_label = f.label
    iv, *carried = op.body.block.args
    for argument in op.body.block.args:
        f.names[argument] = f"%{f.fresh('i' if argument is iv else 'c')}"
    f.line(f"br label %{header}")
    f.start(header)
    phis = len(f.lines)
    test = f.temporary(f"icmp slt {f.typed(iv)}, {f.use(op.ub)}")
    f.line(f"br i1 {test}, label %{body}, label %{done}")
    f.start(body)
    with f.scope():
        f.block(op.body.block)
    next_values = [
        f.temporary(f"add {_overflow_flags(f, op)} {f.typed(iv)}, {f.use(op.step)}"),
        *_yielded(f, op.body.block),
    ]
    f.line(f"br label %{header}{_metadata(op)}")
    initial_values = [f.use(value) for value in (op.lb, *op.iter_args)]
    f.lines[phis:phis] = [
        f"  {f.use(value)} = phi {llvm_type(value.type)} [ {start}, %{entry_label} ], [ {end}, %{f.label} ]"
        for value, start, end in zip((iv, *carried), initial_values, next_values, strict=True)
    ]
    f.start(done)
    for value, argument in zip(op.results, carried, strict=True):
        f.names[value] = f.use(argument)


def _metadata(op: scf.ForOp) -> str:
    """Return the metadata of a loop's back edge: !2 for a loop with vectors, which LLVM must neither vectorize nor
    unroll, !0 for one that it must not vectorize, else nothing."""
    values = (value for inner in op.body.walk() for value in (*inner.operands, *inner.results))
    if any(isinstance(value.type, VectorType) for value in values):
        return ", !llvm.loop !2"
    return ", !llvm.loop !0" if stays_scalar(op) else ""


def loop_metadata(text: str) -> Iterator[str]:
    """Yield a text with a distinct metadata node for each loop, by which LLVM identifies loops, then the nodes. In the
    text, !0 marks loops that LLVM must not vectorize, !2 loops that it must not unroll either."""
    nodes: list[str] = []

    def distinct_node(reference: re.Match[str]) -> str:
        number = len(nodes) + 2
        properties = "!0, !1" if reference[1] == "2" else "!0"
        nodes.append(f"!{number} = distinct !{{!{number}, {properties}}}")
        return f"!llvm.loop !{number}"

    yield re.sub(r"!llvm\.loop !([02])\b", distinct_node, text)
    if nodes:
        yield '!0 = !{!"llvm.loop.vectorize.enable", i1 false}'
        yield '!1 = !{!"llvm.loop.unroll.disable"}'
        yield from nodes


def stays_scalar(op: scf.ForOp | scf.ParallelOp) -> bool:
    """Return whether LLVM must not vectorize a loop, which has a division and a load or store under an scf.if. LLVM
    22.1 miscompiles a conditional access whose index has quotients and remainders of the loop's variable with stride
    one: it takes the address from a lane that is masked off."""
    inner = list(op.body.walk())
    divides = any(isinstance(i, arith.DivUIOp | arith.RemUIOp | arith.FloorDivSIOp) for i in inner)
    return divides and any(isinstance(i, scf.IfOp) and _accesses(i) for i in inner)


def _accesses(op: scf.IfOp) -> bool:
    return any(isinstance(inner, memref.LoadOp | memref.StoreOp) for inner in op.walk())


def _overflow_flags(f: FunctionEmitter, op: scf.ForOp) -> str:
    start = f.forms.of(op.lb)
    return "nuw nsw" if start.is_constant and start.constant >= 0 else "nsw"


def _if(f: FunctionEmitter, op: scf.IfOp) -> None:
    _check_no_buffers(op)
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
    """Emit one side of a branch, which jumps to `done`; return its last label, and its yielded values."""
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
