"""A te program that is tuned as one: its canonical form, by which records know it, and the form as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from compiler.defaults.groups import te_module
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function, positions, state_constants
from compiler.driver import lower, with_constants
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.provenance import Provenance
from compiler.graph.read import read as read_graph
from compiler.graph.spelled import spelled
from compiler.graph.tree import Compute, Graph
from compiler.graph.write import write
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.program.write import update
from compiler.schedule import Schedule


@dataclass(frozen=True)
class Single:
    """A te function, its canonical form whose inputs and results are in canonical order too, and the loops of the
    function as it is written, which say which inputs are constant. `known` are the inputs that the function itself says
    are constant, by position, and the elements of those that it knows."""

    graph: Graph
    form: Canonical
    written: ModuleOp
    known: Mapping[int, DenseAttr | None]

    @property
    def names(self) -> Provenance:
        """What the program calls the parts of its canonical form."""
        return self.form.names

    @cached_property
    def loops(self) -> ModuleOp:
        """The loops of the canonical form: they are tuned, and records' scripts apply to them."""
        return self._lowered(self.form.graph, self.form.arguments)

    def schedule(self, script: ModuleOp) -> Schedule:
        """The canonical form under a script, with the program's arguments and results in its order. Raises
        ScheduleError for a script that does not apply."""
        return Schedule(self._signed).apply(script)

    def spelled(self, schedule: Schedule) -> ModuleOp:
        """The loops of such a schedule under the names of the program."""
        module = schedule.module.clone()
        update(find_function(module), self._spelled(schedule.program))
        return module

    @property
    def unscheduled(self) -> ModuleOp:
        """The loops of the canonical form with the program's arguments and names."""
        return self.spelled(Schedule(self._signed))

    @property
    def program(self) -> Program:
        """The canonical form, unscheduled, with the program's arguments and names: for people to read."""
        return self._spelled(read(find_function(self._signed)))

    @cached_property
    def _signed(self) -> ModuleOp:
        """The loops of the canonical form with the program's arguments and results in its order."""
        return self._lowered(self.form.signed(self.graph), range(len(self.graph.inputs)))

    def _spelled(self, program: Program) -> Program:
        """Such loops, scheduled or not, under the names of the program."""
        arguments = zip(self._interface(program), self._interface(self._own), strict=True)
        return spelled(program, self.names, dict(arguments))

    @cached_property
    def _own(self) -> Program:
        return read(find_function(self.written))

    def _interface(self, program: Program) -> list[str]:
        """The names of the inputs and the results, without the large constants that are arguments between them."""
        names = [buffer.name for buffer in program.arguments]
        return [*names[: len(self.graph.inputs)], *names[len(names) - program.outputs :]]

    def _lowered(self, graph: Graph, inputs: Sequence[int]) -> ModuleOp:
        """The loops of the canonical form, with those inputs constant that are as written; `inputs` are the positions
        that its inputs have in the function."""
        stated = {n for n, buffer in enumerate(self._own.arguments) if buffer.name in self._own.constants}
        canonical_inputs = zip(self.form.arguments, self.form.graph.inputs, strict=True)
        module = ModuleOp([write(graph)])
        elements_by_input = {n: self.known[position] for n, position in enumerate(inputs) if position in self.known}
        state_constants(find_function(module), elements_by_input)
        return with_constants(module, lower(module), [value.name for n, value in canonical_inputs if n in stated])


def single_of(x: object, written: ModuleOp) -> Single | None:
    """A te program as one, given its loops as they are written; None for a program at another level, and for one that
    computes nothing."""
    module = te_module(x)
    if module is None:
        return None
    function = find_function(module)
    graph = read_graph(function)
    if not any(isinstance(node, Compute) for node in graph.nodes):
        return None
    form = canonical(graph, keep_signature=False)
    if not any(isinstance(node, Compute) for node in form.graph.nodes):
        return None
    elements = constant_values(function)
    constants = {n: elements.get(n) for n in positions(function, "constants")}
    return Single(graph, form, written, constants)
