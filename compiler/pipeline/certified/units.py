"""`CertifiedUnit`: a group of a certificate as native functions; `ComputedFunction`: what a te function computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from compiler.analysis.in_place import overwriting
from compiler.certificate.text import GroupCertificate
from compiler.graph.canonical import canonical
from compiler.graph.concatenation import contiguous_parts
from compiler.graph.read import read as read_graph
from compiler.graph.tree import Graph
from compiler.passes.split_constants import SplitProgram, split_program
from compiler.pipeline.certified.memory import Content, joined, value_of, whole
from compiler.pipeline.certified.texts import function_of, te_function_of
from compiler.program.read import read
from compiler.program.tree import Buffer


class Unproved(Exception):
    """Raised for a call that does not compute a value of the program; the message is a clause."""


@dataclass(frozen=True)
class ComputedFunction:
    """The identity of a computation: a key, equal for te functions that compute the same, and the positions of its
    inputs and results in canonical order; unused inputs have no position. parts: of a concatenation, its inputs in
    order."""

    key: str
    inputs: tuple[int, ...]
    results: tuple[int, ...]
    parts: tuple[int, ...] = ()

    @staticmethod
    def of(graph: Graph) -> ComputedFunction:
        """Return the identity of a te function's computation."""
        form, parts = canonical(graph, keep_signature=False), contiguous_parts(graph) or ()
        return ComputedFunction(form.hash, form.arguments, form.results, tuple(part.input for part in parts))

    def result(self, number: int, bytes: int, inputs: Mapping[int, Content]) -> Content:
        """Return the content of result `number`, of `bytes` bytes, from the contents of the inputs by position; of a
        concatenation, the joined contents of its inputs. Raises Unproved if an input that is used is missing, and
        ValueError if there is no such result."""
        missing = [n for n in self.inputs if n not in inputs]
        if missing:
            raise Unproved(f"its input {missing[0]} is not passed")
        if self.parts:
            return joined(piece for n in self.parts for piece in inputs[n])
        return whole(value_of(bytes, self.key, self.results.index(number), [inputs[n] for n in self.inputs]))


class CertifiedUnit:
    """A group of a certificate as native functions: the call, and the preparation of buffers that depend on constants
    only. Its loops are split as by the build, so that the arguments of both functions are known by position."""

    def __init__(self, group: GroupCertificate, is_called: bool) -> None:
        """`is_called`: whether main calls the unit, else the unit is the only function. Raises Unproved if the loops
        have another number of arguments than the te function, or a constant position is that of no input."""
        self.group = group
        self.program = read(function_of(group.loops, f"@{group.name}"))
        self.names = names_of(self.program.arguments)
        counts = len(self.inputs), len(self.outputs)
        if self.te is not None and counts != (len(self.te.inputs), len(self.te.results)):
            raise Unproved(f"the loops of group {group.name} have other arguments than its te function")
        if not all(0 <= n < len(self.inputs) for n in group.constants):
            raise Unproved(f"group {group.name} has no input at a position that the certificate has as constant")
        constants = [self.names[n] for n in group.constants]
        is_split = is_called or bool(constants or self.program.literals)
        self.parts: SplitProgram = split_program(self.program, constants, apart=is_split)
        pairs = [(source, target) for source, target in group.shared]
        self.shared = overwriting(self.parts.main, self.names, pairs)[1] if is_called else ()

    @property
    def inputs(self) -> Sequence[Buffer]:
        """The inputs of its loops."""
        return self.program.arguments[: len(self.program.arguments) - self.program.outputs]

    @property
    def outputs(self) -> Sequence[Buffer]:
        """The results of its loops."""
        return self.program.arguments[len(self.program.arguments) - self.program.outputs :]

    @cached_property
    def te(self) -> Graph | None:
        """The te function; None for a group of which the certificate has only loops."""
        return read_graph(te_function_of(self.group.te, f"@{self.group.name}")) if self.group.te else None

    @cached_property
    def computation(self) -> ComputedFunction:
        """The identity of the group's computation; that of its text of loops if it has no te function."""
        if self.te is not None:
            return ComputedFunction.of(self.te)
        return ComputedFunction(self.group.loops, tuple(range(len(self.inputs))), tuple(range(len(self.outputs))))

    def position(self, buffer: Buffer) -> int | None:
        """Return the position of a native argument among the arguments of the loops; None for a prepared buffer."""
        return self.names.index(buffer.name) if buffer.name in self.names else None


def names_of(buffers: Sequence[Buffer]) -> list[str]:
    """The names of buffers."""
    return [buffer.name for buffer in buffers]
