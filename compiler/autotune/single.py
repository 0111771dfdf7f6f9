"""A te program that is tuned as one: its canonical form, by which records know it, and the form as it is written."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from compiler.autotune.groups import te_module
from compiler.dialects.functions import find_function
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
    function as it is written, which say which inputs are constant."""

    graph: Graph
    form: Canonical
    written: ModuleOp

    @property
    def names(self) -> Provenance:
        """What the program calls the parts of its canonical form."""
        return self.form.names

    @cached_property
    def loops(self) -> ModuleOp:
        """The loops of the canonical form: what is tuned, and what scripts of records are for."""
        return self._lowered(self.form.graph)

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
    def program(self) -> Program:
        """The canonical form, unscheduled, with the program's arguments and names: for people to read."""
        return self._spelled(read(find_function(self._signed)))

    @cached_property
    def _signed(self) -> ModuleOp:
        """The loops of the canonical form with the program's arguments and results in its order."""
        return self._lowered(self.form.signed(self.graph))

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

    def _lowered(self, graph: Graph) -> ModuleOp:
        """The loops of the canonical form, its inputs in some order, with those constant that are as written."""
        stated = {n for n, buffer in enumerate(self._own.arguments) if buffer.name in self._own.constants}
        own = zip(self.form.arguments, self.form.graph.inputs, strict=True)
        module = ModuleOp([write(graph)])
        return with_constants(module, lower(module), [value.name for n, value in own if n in stated])


def single_of(x: object, written: ModuleOp) -> Single | None:
    """A te program as one, given its loops as they are written; None for a program at another level, and for one that
    computes nothing."""
    module = te_module(x)
    if module is None:
        return None
    graph = read_graph(find_function(module))
    if not any(isinstance(node, Compute) for node in graph.nodes):
        return None
    form = canonical(graph, keep_signature=False)
    return Single(graph, form, written) if any(isinstance(node, Compute) for node in form.graph.nodes) else None
