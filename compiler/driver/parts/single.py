"""`SingleGroup`: a te program tuned as one group, its canonical form, and the mapping to the program as written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values, find_function, positions, state_constants
from compiler.driver.parts.groups import Group, input_positions, te_module
from compiler.graph.canonical import canonical
from compiler.graph.read import read as read_graph
from compiler.graph.tree import Compute
from compiler.graph.user_names import program_with_user_names
from compiler.graph.write import write
from compiler.lowering.te_to_loop.nests import arguments_of
from compiler.program.names import Names
from compiler.program.tree import Buffer, Program
from compiler.schedule import Schedule


@dataclass(frozen=True)
class SingleGroup:
    """A te function of one group: its main is one call without copies, for which no code is emitted. group: the
    canonical form, with inputs and results in canonical order. arguments, results: the position in the function of each
    canonical input and result. written_buffers: the arguments of the loops as written: inputs, then results. constants:
    the elements of the constant inputs by position, None if the function does not state them."""

    group: Group
    arguments: tuple[int, ...]
    results: tuple[int, ...]
    written_buffers: tuple[Buffer, ...]
    constants: Mapping[int, DenseAttr | None]

    @property
    def unstated_constants(self) -> list[Buffer]:
        """The constant inputs whose elements the program does not state."""
        return [self.written_buffers[n] for n, elements in sorted(self.constants.items()) if elements is None]

    def schedule(self, script: ModuleOp) -> Schedule:
        """The canonical form under a script, with arguments and results in the program's order. Raises ScheduleError
        for a script that does not apply."""
        return Schedule(self.with_program_signature(self.group.tree)).apply(script)

    def scheduled(self, script: ModuleOp) -> Program:
        """The canonical form under a script, with the program's arguments and names. Raises ScheduleError for a script
        that does not apply."""
        return self.with_user_names(self.with_program_signature(Schedule(self.group.tree).apply(script).program))

    def with_program_signature(self, program: Program) -> Program:
        """Canonical loops, scheduled or not, with arguments and results in the program's order. Inputs of the program
        that the canonical form lacks are added as unused."""
        inputs, count = dict(zip(self.arguments, program.arguments, strict=False)), len(self.arguments)
        result_at = dict(zip(self.results, program.arguments[-program.outputs :], strict=True))
        used_names = Names(program.buffers)
        temporaries = self.written_buffers[: len(self.written_buffers) - program.outputs]
        arguments = (
            *(
                inputs[n] if n in inputs else replace(buffer, name=used_names.fresh("unused"))
                for n, buffer in enumerate(temporaries)
            ),
            *program.arguments[count : len(program.arguments) - program.outputs],
            *(result_at[n] for n in sorted(result_at)),
        )
        return replace(program, arguments=arguments)

    def with_user_names(self, program: Program) -> Program:
        """Loops that `with_program_signature` returned, under the names of the program."""
        names, count = [buffer.name for buffer in program.arguments], len(self.written_buffers) - program.outputs
        interface = [*names[:count], *names[len(names) - program.outputs :]]
        names_written = (buffer.name for buffer in self.written_buffers)
        return program_with_user_names(program, self.group.names, dict(zip(interface, names_written, strict=True)))

    @property
    def unscheduled(self) -> Program:
        """The unscheduled canonical form, with the program's arguments and names."""
        return self.with_user_names(self.with_program_signature(self.group.tree))


def single_group(x: object, constants: Sequence[str] = ()) -> SingleGroup | None:
    """A te program as one group; `constants` are the names of its constant inputs. None for a program at another level,
    and for one without computes. Raises InputError for constants that are no inputs, and the errors of `te_module`."""
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
    constant_positions = positions(function, "constants") | set(input_positions(x, function, constants))
    by_input = {n: elements.get(n) for n in constant_positions}
    by_position = {n: by_input[former] for n, former in enumerate(form.arguments) if former in by_input}
    alone = ModuleOp([write(form.graph)])
    state_constants(find_function(alone), by_position)
    group = Group(graph.name, alone, tuple(by_position), names=form.names, hash=form.hash)
    return SingleGroup(group, form.arguments, form.results, arguments_of(function), by_input)
