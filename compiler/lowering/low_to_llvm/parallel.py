"""scf.parallel on an OpenMP runtime. A loop is outlined into two functions beside its `NAME.body`:

`NAME.body.parallelN.share(first, end, captured ...)` runs a share of the work, which consists of numbered units.
    Captured buffers and the thread's slots are noalias parameters.
`NAME.body.parallelN(data)` is the function of each thread of the runtime: it loads the captured values from a struct,
    and runs the share of its number; shares have equal lengths, or the first ones one unit more.

With one thread, or one unit, `NAME.body` calls the share of all units itself; otherwise GOMP_parallel. A worker that
wakes on a core taken by a team-mate migrates first: see team.py.

Results are equal bit for bit for any thread count. If the policy allows reassociation, LLVM may round the last
iterations of a vectorized loop differently: so the loops that it may vectorize are divided at multiples of its vectors
only. A unit is an iteration if the body has loops or vectors, and LLVM vectorizes in the body only; otherwise it is a
row of the innermost index, or of a single index GRAIN iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Operation, SSAValue

from compiler.affine.limits import fits
from compiler.lowering.low_to_llvm.captured import Captured
from compiler.lowering.low_to_llvm.control import stays_scalar
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.lowering.low_to_llvm.signature import (
    internal,
    quoted,
    slot_offsets,
    slot_parameter,
    slots,
    symbol,
    workspace,
)
from compiler.lowering.low_to_llvm.team import TEAM, join, meet
from compiler.lowering.low_to_llvm.types import llvm_type
from compiler.support.errors import LoweringError

GRAIN = 256
"""The iterations of a unit of a single index: a multiple of LLVM's vector iterations, four vectors of any float."""


def _parallel(f: FunctionEmitter, op: scf.ParallelOp) -> None:
    if op.initVals:
        raise LoweringError("an scf.parallel that reduces has no form in LLVM IR")
    if any(isinstance(inner, scf.ParallelOp) for inner in op.body.walk()):
        raise LoweringError("an scf.parallel inside another one has no form in LLVM IR")
    steps = [f.forms.of(step) for step in op.step]
    if any(step.is_constant and step.constant < 1 for step in steps):
        raise LoweringError("an scf.parallel has a step below 1")
    region = _Region(f, op, f"{symbol(f.function.sym_name.data)}.body.parallel{len(f.outlined)}")
    region.emit_share()
    region.emit_call()


def _reduce(f: FunctionEmitter, op: scf.ReduceOp) -> None:
    """Emit nothing: the end of an scf.parallel without a reduction."""


class _Region:
    """The parallel loop `op`: the emitters of the function around it, `outer`, and of its shares, `inner`, and the
    captured values. name: the prefix of the shares' symbol. offsets: of the slots in a thread's part of the workspace,
    in bytes. is_elementwise: whether the body has no loops and no vectors."""

    def __init__(self, outer: FunctionEmitter, op: scf.ParallelOp, name: str) -> None:
        self.outer = outer
        self.op = op
        self.name = name
        self.inner = FunctionEmitter(outer.function, outer.handlers)
        self.inner.externals = outer.externals
        self.captured = Captured([op], outer, self.inner)
        self.offsets = slot_offsets(op.body.block)[:-1]
        self.is_elementwise = not any(_is_loop_or_vector(inner) for inner in op.body.walk())

    def emit_share(self) -> None:
        """Outline the function that runs the units from %first to before %end."""
        f = self.inner
        private_slots = [slot_parameter(f, slot, f"p{i}") for i, slot in enumerate(slots(self.op.body.block))]
        counts = _counts(f, self.op)
        if not self.is_elementwise:
            self._single_iterations(counts)
        elif len(counts) == 1:
            self._grains(counts[0])
        else:
            self._rows(counts)
        f.line("ret void")
        head = ["i64 %first", "i64 %end", *self.captured.parameters, *private_slots]
        self.outer.outlined.append(internal(f"{self.name}.share", head, [*f.allocas, *f.lines], "noinline noduplicate"))

    def _single_iterations(self, counts: Sequence[str]) -> None:
        with _iterations(self.inner, "%first", "%end", ", !llvm.loop !2") as unit:
            self._iteration(_row_major(self.inner, unit, counts))

    def _grains(self, count: str) -> None:
        """Emit the iterations of units %first to %end of one loop of `count` iterations: GRAIN in each, and the
        remainder in the last."""
        f = self.inner
        first, end = (f.temporary(f"mul nuw nsw i64 {unit}, {GRAIN}") for unit in ("%first", "%end"))
        is_last = f.temporary(f"icmp eq i64 %end, {self.units(f, [count])}")
        stop = f.temporary(f"select i1 {is_last}, i64 {count}, i64 {end}")
        self._innermost(first, stop, [])

    def _rows(self, counts: Sequence[str]) -> None:
        with _iterations(self.inner, "%first", "%end") as unit:
            self._innermost("0", counts[-1], _row_major(self.inner, unit, counts[:-1]))

    def _innermost(self, first: str, end: str, outer: Sequence[str]) -> None:
        metadata = ", !llvm.loop !0" if stays_scalar(self.op) else ""
        with _iterations(self.inner, first, end, metadata) as index:
            self._iteration([*outer, index])

    def units(self, f: FunctionEmitter, counts: Sequence[str]) -> str:
        """Emit the number of units for `counts`, the iterations along each index: their product, for an elementwise
        body without that of the innermost index, or of a single index whole grains, at least one. Return the
        operand."""
        if not self.is_elementwise:
            return _product(f, counts)
        if len(counts) > 1:
            return _product(f, counts[:-1])
        if not counts[0].startswith("%"):
            return str(max(1, int(counts[0]) // GRAIN))
        f.declare("i64", "llvm.umax.i64", ["i64", "i64"])
        return f.temporary(f"call i64 @llvm.umax.i64(i64 {f.temporary(f'udiv i64 {counts[0]}, {GRAIN}')}, i64 1)")

    def _iteration(self, numbers: Sequence[str]) -> None:
        f, op = self.inner, self.op
        for number, iv, lower, step in zip(numbers, op.body.block.args, op.lowerBound, op.step, strict=True):
            value, scale, start = number, f.use(step), f.use(lower)
            if scale != "1":
                value = f.temporary(f"mul nsw i64 {value}, {scale}")
            f.names[iv] = value if start == "0" else f.temporary(f"add nsw i64 {value}, {start}")
        with f.scope():
            f.block(op.body.block)

    def emit_call(self) -> None:
        """Emit the call of the runtime, with at most as many threads as units; with one thread or unit, or without
        units, the function calls the share of all itself."""
        f = self.outer
        units = self.units(f, _counts(f, self.op))
        team = _minimum(f, f.temporary("zext i32 %threads to i64"), units)
        single_label, team_label, done_label = f.fresh("alone"), f.fresh("several"), f.fresh("done")
        f.line(f"br i1 {f.temporary(f'icmp ugt i64 {team}, 1')}, label %{team_label}, label %{single_label}")
        f.start(single_label)
        self._call_share(f, "0", units, self.captured.arguments, "%private")
        f.line(f"br label %{done_label}")
        f.start(team_label)
        self._call_runtime(units, team)
        f.line(f"br label %{done_label}")
        f.start(done_label)

    def _call_share(self, f: FunctionEmitter, first: str, end: str, captured: list[str], private: str) -> None:
        private_slots = [
            f"ptr {f.temporary(f'getelementptr inbounds i8, ptr {private}, i64 {o}')}" for o in self.offsets
        ]
        arguments = ", ".join([f"i64 {first}", f"i64 {end}", *captured, *private_slots])
        f.line(f"call void {quoted(self.name + '.share')}({arguments})")

    def _call_runtime(self, units: str, team: str) -> None:
        f, arguments = self.outer, f"%{self.outer.fresh('data')}"
        private = [("ptr", "%private")] if self.offsets else []
        fields = [
            (TEAM, "zeroinitializer"),
            ("i64", units),
            *private,
            *((llvm_type(value.type), f.use(value)) for value in self.captured.values),
        ]
        types = [type for type, _ in fields]
        struct = f"{{ {', '.join(types)} }}"
        f.allocas.append(f"  {arguments} = alloca {struct}")
        for number, (type, value) in enumerate(fields):
            f.line(f"store {type} {value}, ptr {_field(f, struct, arguments, number)}")
        count = f.temporary(f"trunc i64 {team} to i32")
        join(f, arguments, team)
        f.declare("void", "GOMP_parallel", ["ptr", "ptr", "i32", "i32"])
        f.line(f"call void @GOMP_parallel(ptr {quoted(self.name)}, ptr {arguments}, i32 {count}, i32 0)")
        self._emit_thread(struct, types)

    def _emit_thread(self, struct: str, types: list[str]) -> None:
        f = FunctionEmitter(self.outer.function, self.outer.handlers)
        thread, threads = (_runtime_value(f, f"omp_get_{what}") for what in ("thread_num", "num_threads"))
        caller_label, worker_label, share_label = f.fresh("first"), f.fresh("other"), f.fresh("both")
        f.line(f"br i1 {f.temporary(f'icmp eq i64 {thread}, 0')}, label %{caller_label}, label %{worker_label}")
        f.start(caller_label)
        meet(f, "%data", threads)
        f.line(f"br label %{share_label}")
        f.start(worker_label)
        join(f, "%data", threads)
        f.line(f"br label %{share_label}")
        f.start(share_label)
        fields = list(enumerate(types))[1:]
        values = [f.temporary(f"load {type}, ptr {_field(f, struct, '%data', i)}") for i, type in fields]
        caller_label, end = _share(f, values[0], thread, threads)
        private, captured = "", [f"{type} {value}" for type, value in zip(types[1:], values, strict=True)][1:]
        if self.offsets:
            part = f.temporary(f"mul nuw nsw i64 {thread}, {workspace(f.function).private}")
            private = f.temporary(f"getelementptr inbounds i8, ptr {values[1]}, i64 {part}")
            captured = captured[1:]
        self._call_share(f, caller_label, end, captured, private)
        f.line("ret void")
        self.outer.externals |= f.externals
        self.outer.outlined[-1] += "\n" + internal(self.name, ["ptr %data"], f.lines)


def _is_loop_or_vector(op: Operation) -> bool:
    return isinstance(op, scf.ForOp) or any(isinstance(value.type, VectorType) for value in (*op.operands, *op.results))


def _counts(f: FunctionEmitter, op: scf.ParallelOp) -> list[str]:
    return [_count(f, *bounds) for bounds in zip(op.lowerBound, op.upperBound, op.step, strict=True)]


def _count(f: FunctionEmitter, lower: SSAValue, upper: SSAValue, step: SSAValue) -> str:
    low, high, by = (f.forms.of(value) for value in (lower, upper, step))
    if low.is_constant and high.is_constant and by.is_constant:
        return str(max(0, -((low.constant - high.constant) // by.constant)))
    value = f.temporary(f"sub nsw i64 {f.use(upper)}, {f.use(lower)}")
    if f.use(step) != "1":
        more = f.temporary(f"sub nsw i64 {f.use(step)}, 1")
        value = f.temporary(f"sdiv i64 {f.temporary(f'add nsw i64 {value}, {more}')}, {f.use(step)}")
    f.declare("i64", "llvm.smax.i64", ["i64", "i64"])
    return f.temporary(f"call i64 @llvm.smax.i64(i64 {value}, i64 0)")


def _product(f: FunctionEmitter, counts: Sequence[str]) -> str:
    constant = prod(int(count) for count in counts if not count.startswith("%"))
    if not fits(constant):
        raise LoweringError(f"the nested parallel loops have {constant} iterations, which are counted in 64 bits")
    total = str(constant)
    for count in counts:
        if count.startswith("%"):
            total = count if total == "1" else f.temporary(f"mul nuw nsw i64 {total}, {count}")
    return total


def _minimum(f: FunctionEmitter, a: str, b: str) -> str:
    f.declare("i64", "llvm.umin.i64", ["i64", "i64"])
    return f.temporary(f"call i64 @llvm.umin.i64(i64 {a}, i64 {b})")


def _runtime_value(f: FunctionEmitter, function: str) -> str:
    """Emit a call of a runtime function without arguments and with an i32 result; return the result, zero-extended to
    i64."""
    f.declare("i32", function, [])
    return f.temporary(f"zext i32 {f.temporary(f'call i32 @{function}()')} to i64")


def _share(f: FunctionEmitter, units: str, thread: str, threads: str) -> tuple[str, str]:
    """Emit the share of the thread number `thread` of `threads`; return its first unit and its exclusive end, which are
    equal for an empty share. Example: 10 units over 4 threads are [0, 3), [3, 6), [6, 8) and [8, 10)."""
    each = f.temporary(f"udiv i64 {units}, {threads}")
    remainder = f.temporary(f"urem i64 {units}, {threads}")
    before = _minimum(f, thread, remainder)
    first = f.temporary(f"add nuw nsw i64 {f.temporary(f'mul nuw nsw i64 {thread}, {each}')}, {before}")
    more = f.temporary(f"zext i1 {f.temporary(f'icmp ult i64 {thread}, {remainder}')} to i64")
    count = f.temporary(f"add nuw nsw i64 {each}, {more}")
    return first, f.temporary(f"add nuw nsw i64 {first}, {count}")


def _field(f: FunctionEmitter, struct: str, pointer: str, number: int) -> str:
    return f.temporary(f"getelementptr inbounds {struct}, ptr {pointer}, i64 0, i32 {number}")


@contextmanager
def _iterations(f: FunctionEmitter, first: str, end: str, metadata: str = "") -> Iterator[str]:
    """Emit a loop over [first, end); the `with` body emits its body, from the register of the index. No iteration runs
    if end <= first; `first` must not be negative. `metadata` is appended to the branch back."""
    head, body, done = f.fresh("head"), f.fresh("body"), f.fresh("done")
    entry_label, index = f.label, f"%{f.fresh('i')}"
    f.line(f"br label %{head}")
    f.start(head)
    phi = len(f.lines)
    f.line(f"br i1 {f.temporary(f'icmp slt i64 {index}, {end}')}, label %{body}, label %{done}")
    f.start(body)
    yield index
    next_index = f.temporary(f"add nuw nsw i64 {index}, 1")
    f.line(f"br label %{head}{metadata}")
    f.lines.insert(phi, f"  {index} = phi i64 [ {first}, %{entry_label} ], [ {next_index}, %{f.label} ]")
    f.start(done)


def _row_major(f: FunctionEmitter, number: str, counts: Sequence[str]) -> list[str]:
    """Emit the index in each dimension, of extents `counts`, from a number in row-major order."""
    indices: list[str] = []
    for count in reversed(counts[1:]):
        indices.insert(0, f.temporary(f"urem i64 {number}, {count}"))
        number = f.temporary(f"udiv i64 {number}, {count}")
    return [number, *indices]


PARALLEL: Handlers = {scf.ParallelOp: _parallel, scf.ReduceOp: _reduce}
