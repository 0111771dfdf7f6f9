"""Instrumentation for `strata explain`: the loop of each instruction, and the time of loops or calls.

A loop's number is its position, from 1, among the loops of the module in the order of the text; 0 is outside of loops.
LLVM preserves it as the line of a debug location, which assembly shows as `.loc`.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp
from xdsl.ir import Operation

from compiler.lowering.low_to_llvm import HANDLERS, emit
from compiler.lowering.low_to_llvm.function import FunctionEmitter, Handlers
from compiler.types.machines import Machine

PROFILE = "strata.profile"
"""The function that returns the address of the profile: for each loop or call, from 0, its ticks and its runs, as
i64."""
CLOCK = "strata.clock"
"""The function that returns the current ticks."""

_MARK = " ; loop "
_FIRST = 1_000_000
"""The number of the first metadata node, above the emitter's own."""


LoopOp: TypeAlias = scf.ForOp | scf.ParallelOp


def loops_of(module: ModuleOp) -> list[LoopOp]:
    """Return the loops of a low-level module; the number of a loop is its position, from 1."""
    return [op for op in module.walk() if isinstance(op, LoopOp)]


def emit_marked(module: ModuleOp, machine: Machine, timed: Collection[int] = ()) -> str:
    """Emit the LLVM IR text of a module, with the number of each instruction's innermost loop as debug location.

        br i1 %t, label %body, label %done
      ->
        br i1 %t, label %body, label %done, !dbg !1007        // !1007 = !DILocation(line: 3, ...)

    The loops with the numbers `timed` add the ticks of `llvm.readcyclecounter`, and their runs, to the profile. Debug
    locations do not change the machine code; timing does, a little. `timed` are positions of loops from 1. Raises
    LoweringError for an op or a type without a form in LLVM IR, and for an instruction that the machine lacks.
    """
    numbers = {op: number for number, op in enumerate(loops_of(module), start=1)}

    def emit_loop(f: FunctionEmitter, op: LoopOp) -> None:
        number, start = numbers[op], len(f.lines)
        start_ticks = _now(f) if number in timed else None
        HANDLERS[type(op)](f, op)
        if start_ticks is not None:
            _record(f, number, start_ticks, _is_concurrent(op))
        f.lines[start:] = [_mark(line, number) for line in f.lines[start:]]

    marking: Handlers = {kind: emit_loop for kind in (scf.ForOp, scf.ParallelOp) if kind in HANDLERS}
    text = emit(module, machine, {**HANDLERS, **marking})
    return "\n".join([*_located(text), *(_profile(len(numbers)) if timed else ())])


def emit_profiled(module: ModuleOp, machine: Machine) -> str:
    """Emit the LLVM IR text of a module in which each call adds its ticks and runs to the profile; calls are numbered
    from 1 in order. Raises LoweringError for an op or a type without a form in LLVM IR, and for an instruction that the
    machine lacks."""
    numbers = {op: number for number, op in enumerate((op for op in module.walk() if isinstance(op, CallOp)), start=1)}

    def emit_call(f: FunctionEmitter, op: CallOp) -> None:
        start_ticks = _now(f)
        HANDLERS[CallOp](f, op)
        _record(f, numbers[op], start_ticks, _is_concurrent(op))

    return "\n".join([emit(module, machine, {**HANDLERS, CallOp: emit_call}), *_profile(len(numbers))])


def profile_at(function: int, count: int) -> NDArray[np.int64]:
    """Return a view of the profile of loaded code with `count` loops or calls: row n has the ticks and the runs of
    number n, row 0 is empty. `function` is the address of the function PROFILE. Valid as long as the code is loaded."""
    start = ctypes.CFUNCTYPE(ctypes.c_void_p)(function)()
    return np.ctypeslib.as_array((ctypes.c_int64 * (2 * count + 2)).from_address(start or 0)).reshape(count + 1, 2)


def _now(f: FunctionEmitter) -> str:
    f.declare("i64", "llvm.readcyclecounter", ())
    return f.temporary("call i64 @llvm.readcyclecounter()")


def _record(f: FunctionEmitter, number: int, start_ticks: str, atomic: bool) -> None:
    """Emit the addition of the ticks since `start_ticks`, and of one run, to the profile of loop or call `number`;
    `atomic`, which waits for earlier stores, is for concurrent threads only."""
    ticks = f.temporary(f"sub i64 {_now(f)}, {start_ticks}")
    for offset, increment in ((0, ticks), (8, "1")):
        counter_pointer = f"ptr getelementptr (i8, ptr @{PROFILE}.of, i64 {16 * number + offset})"
        if atomic:
            f.line(f"atomicrmw add {counter_pointer}, i64 {increment} monotonic")
            continue
        counter = f.temporary(f"load i64, {counter_pointer}")
        f.line(f"store i64 {f.temporary(f'add i64 {counter}, {increment}')}, {counter_pointer}")


def _is_concurrent(op: Operation | None) -> bool:
    parent = None if op is None else op.parent_op()
    return isinstance(parent, scf.ParallelOp) or (parent is not None and _is_concurrent(parent))


def _profile(loops: int) -> Iterator[str]:
    yield f"@{PROFILE}.of = internal global [{2 * loops + 2} x i64] zeroinitializer, align 64"
    yield f"define ptr @{PROFILE}() {{\n  ret ptr @{PROFILE}.of\n}}"
    yield f"define i64 @{CLOCK}() {{\n  %t = call i64 @llvm.readcyclecounter()\n  ret i64 %t\n}}\n"


def _mark(line: str, number: int) -> str:
    return line if _MARK in line or not line.startswith("  ") else f"{line}{_MARK}{number}"


def _located(text: str) -> Iterator[str]:
    """Yield the text with a debug location for each mark; functions without marks do not change."""
    nodes: list[str] = []

    def node(content: str) -> str:
        nodes.append(content)
        return f"!{_FIRST + len(nodes) - 1}"

    file = node('!DIFile(filename: "loops", directory: ".")')
    unit = node(f"distinct !DICompileUnit(language: DW_LANG_C99, file: {file}, emissionKind: LineTablesOnly)")
    type = node("!DISubroutineType(types: null)")
    for part in re.split(r"(?<=^}\n)", text, flags=re.MULTILINE):
        if _MARK not in part:
            yield part
            continue
        fields = f"scope: {file}, file: {file}, unit: {unit}, type: {type}, spFlags: DISPFlagDefinition"
        scope = node(f'distinct !DISubprogram(name: "f{len(nodes)}", {fields})')
        locations: dict[str, str] = {}
        yield "\n".join(_line(line, scope, locations, node) for line in part.splitlines())
    flags = node('!{i32 2, !"Debug Info Version", i32 3}')
    yield f"!llvm.dbg.cu = !{{{unit}}}\n!llvm.module.flags = !{{{flags}}}"
    yield from (f"!{_FIRST + n} = {content}" for n, content in enumerate(nodes))


def _line(line: str, scope: str, locations: dict[str, str], node: Callable[[str], str]) -> str:
    if line.startswith("define "):
        return f"{line.removesuffix(' {')} !dbg {scope} {{"
    if not line.startswith("  "):
        return line
    instruction, _, number = line.partition(_MARK)
    number = number or "0"
    if number not in locations:
        locations[number] = node(f"!DILocation(line: {number}, scope: {scope})")
    return f"{instruction}, !dbg {locations[number]}"
