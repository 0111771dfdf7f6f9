"""A te program that is tuned as one: its canonical form, by which records know it, and the form as it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function, positions, state_constants
from compiler.driver.inputs import with_constants
from compiler.driver.parts.groups import te_module
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.provenance import Provenance
from compiler.graph.read import read as read_graph
from compiler.graph.spelled import spelled
from compiler.graph.tree import Compute, Graph
from compiler.graph.write import write
from compiler.pipeline import lower
from compiler.program.names import Names
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
        """The loops of the canonical form, with those inputs constant that are as written: they are tuned, and records'
        scripts apply to them."""
        stated = {n for n, buffer in enumerate(self._own.arguments) if buffer.name in self._own.constants}
        canonical_inputs = list(zip(self.form.arguments, self.form.graph.inputs, strict=True))
        module = ModuleOp([write(self.form.graph)])
        known = {n: self.known[position] for n, position in enumerate(self.form.arguments) if position in self.known}
        state_constants(find_function(module), known)
        return with_constants(module, lower(module), [value.name for n, value in canonical_inputs if n in stated])

    def schedule(self, script: ModuleOp) -> Schedule:
        """The canonical form under a script, with the program's arguments and results in its order. Raises
        ScheduleError for a script that does not apply."""
        module = self.loops.clone()
        update(find_function(module), self.signed(read(find_function(module))))
        return Schedule(module).apply(script)

    def scheduled(self, script: ModuleOp) -> Program:
        """The canonical form under a script, with the program's arguments and names. Raises ScheduleError as well."""
        return self.spelled(self.signed(Schedule(self.loops).apply(script).program))

    def signed(self, program: Program) -> Program:
        """The canonical loops, scheduled or not, with the program's arguments and results in its order."""
        inputs, count = dict(zip(self.form.arguments, program.arguments, strict=False)), len(self.form.arguments)
        results = dict(zip(self.form.results, program.arguments[-program.outputs :], strict=True))
        taken = Names(program.buffers)
        own = self._own.arguments[: len(self.graph.inputs)]
        arguments = (
            *(
                inputs[n] if n in inputs else replace(buffer, name=taken.fresh("unused"))
                for n, buffer in enumerate(own)
            ),
            *program.arguments[count : len(program.arguments) - program.outputs],
            *(results[n] for n in sorted(results)),
        )
        return replace(program, arguments=arguments)

    def spelled(self, program: Program) -> Program:
        """Such loops under the names of the program."""
        arguments = zip(self._interface(program), self._interface(self._own), strict=True)
        return spelled(program, self.names, dict(arguments))

    @property
    def unscheduled(self) -> Program:
        """The canonical form, unscheduled, with the program's arguments and names."""
        return self.spelled(self.signed(read(find_function(self.loops))))

    @cached_property
    def _own(self) -> Program:
        return read(find_function(self.written))

    def _interface(self, program: Program) -> list[str]:
        """The names of the inputs and the results, without the large constants that are arguments between them."""
        names = [buffer.name for buffer in program.arguments]
        return [*names[: len(self.graph.inputs)], *names[len(names) - program.outputs :]]


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
