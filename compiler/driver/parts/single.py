"""A te program that is tuned as one: its canonical form, by which records know it, and the form as it is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function, positions, state_constants
from compiler.driver.parts.groups import positions_of, te_module
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.provenance import Provenance
from compiler.graph.read import read as read_graph
from compiler.graph.spelled import spelled
from compiler.graph.tree import Compute, Graph
from compiler.graph.write import write
from compiler.lowering.te_to_loop import arguments_of
from compiler.pipeline.loops import tree_of
from compiler.program.names import Names
from compiler.program.tree import Buffer, Program
from compiler.program.write import write as write_loops
from compiler.schedule import Schedule


@dataclass(frozen=True)
class Single:
    """A te function, and its canonical form, whose inputs and results are in canonical order too.

    own: the arguments of its loops as it is written: inputs, then results. constants: the inputs that never change, by
    position, and the elements of those that the function itself knows.
    """

    graph: Graph
    form: Canonical
    own: tuple[Buffer, ...]
    constants: Mapping[int, DenseAttr | None]

    @property
    def names(self) -> Provenance:
        """What the program calls the parts of its canonical form."""
        return self.form.names

    @cached_property
    def tree(self) -> Program:
        """The loops of the canonical form: they are tuned, and records' scripts apply to them."""
        module = ModuleOp([write(self.form.graph)])
        stated = {n: self.constants[own] for n, own in enumerate(self.form.arguments) if own in self.constants}
        state_constants(find_function(module), stated)
        return tree_of(module)

    @cached_property
    def loops(self) -> ModuleOp:
        """The same as IR."""
        return ModuleOp([write_loops(self.tree)])

    @property
    def unknown(self) -> list[Buffer]:
        """The arguments that are constant and whose elements the program does not know."""
        return [self.own[n] for n, elements in sorted(self.constants.items()) if elements is None]

    def schedule(self, script: ModuleOp) -> Schedule:
        """The canonical form under a script, with the program's arguments and results in its order. Raises
        ScheduleError for a script that does not apply."""
        return Schedule(self.signed(self.tree)).apply(script)

    def scheduled(self, script: ModuleOp) -> Program:
        """The canonical form under a script, with the program's arguments and names. Raises ScheduleError as well."""
        return self.spelled(self.signed(Schedule(self.tree).apply(script).program))

    def signed(self, program: Program) -> Program:
        """The canonical loops, scheduled or not, with the program's arguments and results in its order."""
        inputs, count = dict(zip(self.form.arguments, program.arguments, strict=False)), len(self.form.arguments)
        results = dict(zip(self.form.results, program.arguments[-program.outputs :], strict=True))
        taken = Names(program.buffers)
        own = self.own[: len(self.graph.inputs)]
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
        names, count = [buffer.name for buffer in program.arguments], len(self.graph.inputs)
        interface = [*names[:count], *names[len(names) - program.outputs :]]
        return spelled(program, self.names, dict(zip(interface, (buffer.name for buffer in self.own), strict=True)))

    @property
    def unscheduled(self) -> Program:
        """The canonical form, unscheduled, with the program's arguments and names."""
        return self.spelled(self.signed(self.tree))


def single_of(x: object, constants: Sequence[str] = ()) -> Single | None:
    """A te program as one, some of whose inputs are constant; None for a program at another level, and for one that
    computes nothing. Raises InputError for constants that are no inputs."""
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
    stated = positions(function, "constants") | set(positions_of(x, function, constants))
    return Single(graph, form, arguments_of(function), {n: elements.get(n) for n in stated})
