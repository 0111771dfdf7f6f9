"""`calls_verdict`: whether the calls of a library, in their order and memory, compute the program in groups.

Each call computes a value that is known by the te function and the values of its operands. Main and the preparations
run on memory that holds such values; the outputs must then hold the values of the te program.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, UnrealizedConversionCastOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.dialects.scf import IfOp
from xdsl.ir import Operation, SSAValue

from compiler.analysis.verify.prove import Verdict
from compiler.certificate.text import CallCertificate, VersionCertificate
from compiler.dialects.upstream.arith import CmpfOp
from compiler.graph.guarded import guarded
from compiler.graph.main import size
from compiler.pipeline.certified.interface import LibraryInterface
from compiler.pipeline.certified.memory import Content, Memory, MemoryRange, value_of, whole
from compiler.pipeline.certified.texts import function_of
from compiler.pipeline.certified.units import CertifiedUnit, Unproved
from compiler.pipeline.certified.values import argument, values_of_function, values_of_groups
from compiler.program.tree import Buffer, Program
from compiler.types.elements import element_bytes


def calls_verdict(version: VersionCertificate, interface: LibraryInterface) -> Verdict:
    """Prove that the calls of a version compute the results of its te program in groups, or of its only function;
    undecided, with the first failure as the reason, where the proof fails. Raises InputError for texts that are no
    programs."""
    try:
        units = {group.symbol: CertifiedUnit(group, bool(version.main)) for group in version.groups}
        only = next(iter(units.values()))
        expected = values_of_groups(version.program) if version.main else values_of_function(only)
        if len(expected.results) != len(interface.outputs):
            raise Unproved(f"the program has {len(expected.results)} results")
        run = _Run(version, interface, units, expected.values)
        run.run()
        for number, (name, content) in enumerate(expected.results.items()):
            if run.memory.read(MemoryRange(("output", number), 0, interface.outputs[number].bytes)) != content:
                reason = run.deviation or "its memory holds another value at the end"
                raise Unproved(f"the result '{name}' is not the program's: {reason}")
    except Unproved as failure:
        return Verdict("undecided", str(failure))
    return Verdict("proved")


@dataclass(frozen=True)
class _Prepared:
    """The content of a prepared buffer: the unit that prepares it, its name, and the contents of the preparation's
    inputs by position."""

    unit: CertifiedUnit
    name: str
    inputs: Mapping[int, Content]


@dataclass
class _Run:
    """A symbolic run of a library's version on memory of values, called as its interface states. units: by symbol.
    expected: the values of the te program. deviation: a sentence about the first call that computes no value of the
    program."""

    version: VersionCertificate
    interface: LibraryInterface
    units: Mapping[str, CertifiedUnit]
    expected: frozenset[Content]
    memory: Memory = field(default_factory=Memory)
    deviation: str = ""
    _prepared: dict[Content, _Prepared] = field(default_factory=dict)

    def run(self) -> None:
        """Fill the constants, then run the program once. Raises Unproved if the certificate does not match."""
        weights = zip(self.interface.weights, self.interface.weights_for(self.version.cpu), strict=True)
        for number, (array, name) in enumerate(weights):
            self.memory.write(MemoryRange(("weight", number), 0, array.bytes), argument(name, array.bytes))
        for number, array in enumerate(self.interface.inputs):
            self.memory.write(MemoryRange(("input", number), 0, array.bytes), argument(array.name, array.bytes))
        for number, offset in self.version.copies:
            if not 0 <= number < len(self.interface.weights):
                raise Unproved(f"the library has no weight {number}")
            bytes = self.interface.weights[number].bytes
            content = self.memory.read(MemoryRange(("weight", number), 0, bytes))
            self.memory.write(MemoryRange("constant", offset, bytes), content)
        *preparations, last = self.version.calls
        for call in preparations:
            self._call(call.symbol, _starts(call))
        if self.version.main:
            self._main(function_of(self.version.main, "main"), _starts(last))
        else:
            self._call(last.symbol, _starts(last))

    def _main(self, function: FuncOp, starts: Sequence[MemoryRange]) -> None:
        """Run main symbolically on arguments that begin at the memory ranges `starts`. Raises Unproved for another
        number of ranges, and for an op or a call that main does not have by its certificate."""
        if len(starts) != len(function.args):
            raise Unproved(f"main takes {len(function.args)} arrays, and is called with {len(starts)}")
        places = dict[SSAValue, MemoryRange]()
        for value, start in zip(function.args, starts, strict=True):
            places[value] = MemoryRange(start.region, start.start, _bytes(value))
        for op in function.body.block.ops:
            self._step(op, places)

    def _step(self, op: Operation, places: dict[SSAValue, MemoryRange]) -> None:
        match op:
            case memref.AllocOp():
                places[op.memref] = MemoryRange(("temporary", len(places)), 0, _bytes(op.memref))
            case memref.ViewOp():
                places[op.result] = _viewed(op, places[op.source])
            case UnrealizedConversionCastOp():
                places[op.results[0]] = places[op.inputs[0]]
            case memref.CopyOp():
                self.memory.write(places[op.destination], self.memory.read(places[op.source]))
            case CallOp():
                self._call(op.callee.string_value(), [places[value] for value in op.arguments])
            case IfOp():
                self._skipped(op, places)
            case ConstantOp() | memref.LoadOp() | CmpfOp() | ReturnOp():
                return
            case _:
                raise Unproved(f"'{op.name}' is not an op of main")

    def _skipped(self, op: IfOp, places: Mapping[SSAValue, MemoryRange]) -> None:
        """Run a call that is skipped unless a guard is zero. If it is skipped, the result is the input that is in its
        memory already. Raises Unproved unless the guard and this input are those of the call's group."""
        test, ops = op.cond.owner, list(op.true_region.block.ops)
        call, load = ops[0], test.lhs.owner if isinstance(test, CmpfOp) else None
        is_zero = isinstance(test, CmpfOp) and test.predicate_name == "oeq" and _is_zero(test.rhs)
        if not isinstance(call, CallOp) or len(ops) != 2 or not isinstance(load, memref.LoadOp) or not is_zero:
            raise Unproved("'scf.if' of main is not one call under a guard")
        arguments = [places[value] for value in call.arguments]
        unit = self._unit(call.callee.string_value())
        found = None if unit.te is None else guarded(unit.te)
        guard = self.memory.read(places[load.memref])
        inputs = self._inputs(unit, unit.parts.main, arguments)
        if found is None or inputs.get(found.guard) != guard:
            raise Unproved(f"the call of group {unit.group.name} is under a guard that is not its own")
        if inputs.get(found.value) != self.memory.read(arguments[-1]):
            raise Unproved(f"the form of group {unit.group.name} is not in the memory of its result")
        self._call(call.callee.string_value(), arguments)

    def _unit(self, symbol: str) -> CertifiedUnit:
        if symbol not in self.units:
            raise Unproved(f"the certificate has no group for the function '{symbol}'")
        return self.units[symbol]

    def _call(self, symbol: str, starts: Sequence[MemoryRange]) -> None:
        """Run the native function of a symbol on arrays that begin at the memory ranges `starts`; write the contents of
        its outputs. Raises Unproved for an unknown symbol, another number of arrays, and an output that overlaps
        another array."""
        preparing = next((unit for unit in self.units.values() if unit.group.prepare == symbol and symbol), None)
        unit = preparing or self._unit(symbol)
        program = unit.parts.prepare if preparing else unit.parts.main
        if program is None or len(starts) != len(program.arguments):
            raise Unproved(f"a call of group {unit.group.name} passes {len(starts)} arrays")
        places = [MemoryRange(s.region, s.start, size(b)) for s, b in zip(starts, program.arguments, strict=True)]
        inputs = self._inputs(unit, program, places)
        outputs = places[len(places) - program.outputs :]
        self._check_overlaps(unit, program, places)
        for number, place in enumerate(outputs):
            if preparing:
                name = program.arguments[len(places) - program.outputs + number].name
                content = whole(value_of(place.size, "prepared", symbol, name, sorted(inputs.items())))
                self._prepared[content] = _Prepared(unit, name, inputs)
            else:
                content = unit.computation.result(number, place.size, inputs)
                if content not in self.expected and not self.deviation:
                    self.deviation = f"a call of group {unit.group.name} reads or computes other values"
            self.memory.write(place, content)

    def _inputs(self, unit: CertifiedUnit, program: Program, places: Sequence[MemoryRange]) -> dict[int, Content]:
        """Return the contents of a unit's inputs in a call, by position; inputs that only the unit's preparation reads
        are those of the prepared buffers. Raises Unproved for a buffer that the preparation has not written, or has
        written from other inputs."""
        inputs = dict[int, Content]()
        count = len(places) - program.outputs
        for buffer, place in zip(program.arguments[:count], places[:count], strict=True):
            content, position = self.memory.read(place), unit.position(buffer)
            prepared = {} if position is not None else self._inputs_of_prepared(unit, buffer, content)
            for n, value in ({position: content} if position is not None else prepared).items():
                if inputs.setdefault(n, value) != value:
                    raise Unproved(f"the preparation of group {unit.group.name} has read another input {n}")
        return inputs

    def _inputs_of_prepared(self, unit: CertifiedUnit, buffer: Buffer, content: Content) -> Mapping[int, Content]:
        prepared = self._prepared.get(content)
        if prepared is None or prepared.unit is not unit or prepared.name != buffer.name:
            raise Unproved(f"'{buffer.name}' of group {unit.group.name} is not what its preparation has written")
        return prepared.inputs

    def _check_overlaps(self, unit: CertifiedUnit, program: Program, places: Sequence[MemoryRange]) -> None:
        """Raise Unproved if an output overlaps another argument, other than an input that it may overwrite."""
        count = len(places) - program.outputs
        for target, output in enumerate(places[count:]):
            for n, place in enumerate(places):
                if n == count + target or not output.overlaps(place):
                    continue
                source = unit.position(program.arguments[n]) if n < count else None
                if (source, target) not in unit.shared or place != output:
                    raise Unproved(f"output {target} of group {unit.group.name} overlaps another of its arrays")


def _starts(call: CallCertificate) -> list[MemoryRange]:
    """Return the memory ranges at which the arrays of a call begin, of size 0."""
    memory: dict[str, Hashable] = {"constant": "constant", "scratch": "scratch"}
    return [
        MemoryRange(memory[str(kind)], int(number), 0) if kind in memory else MemoryRange((kind, number), 0, 0)
        for kind, number in call.pointers
    ]


def _bytes(value: SSAValue) -> int:
    """Return the bytes of a buffer of main. Raises Unproved for a value that is no buffer."""
    if not isinstance(value.type, MemRefType):
        raise Unproved(f"main has a value of type {value.type}")
    return prod(value.type.get_shape()) * element_bytes(value.type.element_type)


def _viewed(view: memref.ViewOp, base: MemoryRange) -> MemoryRange:
    """Return the memory range of a view of a buffer of bytes. Raises Unproved unless it is constant and inside."""
    shift, bytes = view.byte_shift.owner, _bytes(view.result)
    if not isinstance(shift, ConstantOp) or not isinstance(shift.value, IntegerAttr):
        raise Unproved("a view of main is at an offset that is no constant")
    start = shift.value.value.data
    if not 0 <= start <= base.size - bytes:
        raise Unproved("a view of main is not within its memory")
    return MemoryRange(base.region, base.start + start, bytes)


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, ConstantOp) and isinstance(op.value, FloatAttr) and op.value.value.data == 0
