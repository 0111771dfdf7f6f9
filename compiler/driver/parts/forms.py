"""`OfferedForms`: a whole program, the other forms of its groups that laws offer, and the program in chosen forms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr

from compiler import te
from compiler.alternatives import GROUP_LAWS, Chosen, Conditions, Law
from compiler.alternatives.choice import faster_forms, preferred
from compiler.alternatives.splice import append_function
from compiler.database.record import WRITTEN, hash_of
from compiler.dialects.functions import find_function, functions
from compiler.dialects.numbers import dtype_of
from compiler.driver.parts.groups import Group, GroupedProgram, grouped_program
from compiler.graph.canonical import canonical_hash
from compiler.graph.grouping.outline import GROUP, LAW
from compiler.graph.read import read
from compiler.graph.tree import Call, Graph, Node
from compiler.graph.write import write
from compiler.program.names import Names
from compiler.program.tree import Buffer
from compiler.types.machines import host


def forms_of(x: object) -> Iterator[Group]:
    """Yield the groups of a te program after each law of groups, applied wherever it can be, as if all inputs were
    constant; the groups that a law leaves unchanged are among them. Nothing for a program at another level. `x` is a
    program as for `te_module`, with its errors."""
    program = grouped_program(x, (), single=True)
    if program is not None:
        constant = replace(program, constants=tuple(range(len(program.names))))
        for law in GROUP_LAWS:
            yield from with_forms(constant, Conditions(host(), "contract"), [law.always]).groups


@dataclass(frozen=True)
class GroupForms:
    """A group as written, its canonical graph, and its other forms that may be faster, the largest estimated gain
    first."""

    group: Group
    graph: Graph
    others: tuple[Chosen, ...]

    @property
    def preferred(self) -> str:
        """The name of the form that the estimate prefers: that of a law, or WRITTEN."""
        chosen = preferred(self.others)
        return WRITTEN if chosen is None else chosen.law.name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all its forms, the preferred one first."""
        return tuple(dict.fromkeys((self.preferred, WRITTEN, *(other.law.name for other in self.others))))

    def form(self, name: str) -> Chosen | None:
        """The other form with a name; None for WRITTEN, and for an unknown name."""
        return next((other for other in self.others if other.law.name == name), None)


@dataclass(frozen=True, eq=False)
class OfferedForms:
    """A program with its groups as written, and those of its groups that have other forms."""

    program: GroupedProgram
    groups: tuple[GroupForms, ...]

    @property
    def preferred(self) -> dict[str, str]:
        """The name of the form that the estimate prefers, by the name of the group."""
        return {group.group.name: group.preferred for group in self.groups}

    @cached_property
    def hash(self) -> str:
        """A hash of the calls of a run in order, by the canonical hashes of the groups as written."""
        hashes = self.program.hashes

        def digest(callee: str) -> str:
            return hashes.get(callee) or canonical_hash(ModuleOp([find_function(self.program.module, callee).clone()]))

        callees = [call.callee for call in self.program.constant_split.main.calls]
        digests = {callee: digest(callee) for callee in dict.fromkeys(callees)}
        return hash_of(" ".join(("forms", *(digests[callee] for callee in callees))))

    def in_forms(self, forms: Mapping[str, str]) -> GroupedProgram:
        """The program with its groups in `forms`, the names of forms by the names of all of `groups`; the same object
        if all are as written.

            %y = call @group_0(%x, %w)
          ->
            %guard = call @group_0_guard(%x, %w)
            %form = call @group_0_winograd_2x2(%x, %w)
            %y = call @group_0(%x, %w, %guard, %form)

        If the guard is not zero, the group returns the result of the form; else it computes its result as written.
        """
        names = Names(function.sym_name.data for function in functions(self.program.module))
        replaced: dict[str, _Replaced] = {}
        for group in self.groups:
            chosen = group.form(forms[group.group.name])
            if chosen is not None:
                replaced[group.group.name] = _replaced(group.graph, chosen, names)
        return _calling(self.program, replaced) if replaced else self.program


def offered_forms(program: GroupedProgram, conditions: Conditions, laws: Sequence[Law]) -> OfferedForms:
    """Find the forms of a program's groups that laws offer, that the conditions permit, and that may be faster."""
    groups = list[GroupForms]()
    for group in program.groups:
        graph = read(find_function(program.module, group.name))
        constants = frozenset(graph.inputs[n].name for n in group.constants)
        other_forms = faster_forms(graph, replace(conditions, constants=constants), laws)
        groups += [GroupForms(group, graph, other_forms)] if other_forms else []
    return OfferedForms(program, tuple(groups))


def with_forms(program: GroupedProgram, conditions: Conditions, laws: Sequence[Law]) -> GroupedProgram:
    """A program with each group in the form that an estimate prefers; the same object if all stay as written."""
    forms = offered_forms(program, conditions, laws)
    return forms.in_forms(forms.preferred)


@dataclass(frozen=True)
class _Replaced:
    """The functions that replace a group: guard, form, and `otherwise`, the group itself, which computes if the guard
    fails. For a form without a guard only the form; the others are None."""

    guard: Graph | None
    form: Graph
    otherwise: Graph | None

    @property
    def functions(self) -> list[Graph]:
        """The functions, in the order of their calls."""
        return [graph for graph in (self.guard, self.form, self.otherwise) if graph is not None]


def _replaced(graph: Graph, chosen: Chosen, names: Names) -> _Replaced:
    law = chosen.law.name
    name = names.fresh(f"{graph.name}_{law.replace('-', '_')}")
    form = replace(chosen.form.graph, name=name, attributes={GROUP: UnitAttr(), LAW: StringAttr(law)})
    guard = chosen.form.guard
    if guard is None:
        return _Replaced(None, form, None)
    guard = replace(guard, name=names.fresh(f"{graph.name}_guard"), private=True, attributes={GROUP: UnitAttr()})
    return _Replaced(guard, form, _otherwise(graph))


def _otherwise(graph: Graph) -> Graph:
    """A group with further inputs `guard` and `form`: returns `form` if the guard is not zero, else its own result."""
    names = Names(graph.values)
    written = _like(graph.values[graph.results[0]], graph.results[0])
    guard = te.placeholder((1,), "f32", names.fresh("guard"))
    form = _like(graph.values[graph.results[0]], names.fresh("form"))
    either = te.compute(
        written.shape, lambda *i: te.select(te.not_equal(guard[0], 0.0), form[i], written[i]), name="either"
    )
    return append_function(graph, te.function("either", [written, guard, form], either))


def _like(buffer: Buffer, name: str) -> te.Tensor:
    return te.placeholder(buffer.shape, str(dtype_of(buffer.element)), name)


def _calling(program: GroupedProgram, replaced: dict[str, _Replaced]) -> GroupedProgram:
    """The program with the calls of groups replaced; `replaced` maps their names to the functions to call instead."""
    graphs = {function.sym_name.data: read(function) for function in functions(program.module)}
    main = graphs.pop(program.function.sym_name.data)
    names = Names(main.values)
    nodes: list[Node] = []
    for node in main.nodes:
        new = replaced.get(node.callee) if isinstance(node, Call) else None
        nodes += [node] if new is None else _calls(node, new, names)
    callees = [f for name, graph in graphs.items() for f in (replaced[name].functions if name in replaced else [graph])]
    module = ModuleOp(list(map(write, (replace(main, nodes=tuple(nodes)), *callees))), dict(program.module.attributes))
    parts = {
        f.name: program.user_names[name]
        for name, r in replaced.items()
        for f in r.functions
        if name in program.user_names
    }
    hashes = {name: digest for name, digest in program.hashes.items() if name not in replaced}
    written = {f.name: name for name, r in replaced.items() for f in r.functions}
    return replace(program, module=module, user_names={**program.user_names, **parts}, hashes=hashes, written=written)


def _calls(node: Node, new: _Replaced, names: Names) -> list[Node]:
    """The calls that replace one call of a group: of the guard, the form and the group itself; or of the form alone."""
    assert isinstance(node, Call)
    if new.guard is None or new.otherwise is None:
        return [replace(node, callee=new.form.name)]
    operands = dict(zip((value.name for value in new.form.inputs), node.operands, strict=True))
    guard = replace(new.guard.values[new.guard.results[0]], name=names.fresh("guard"))
    form = replace(node.results[0], name=names.fresh("form"))
    return [
        Call(new.guard.name, tuple(operands[value.name] for value in new.guard.inputs), (guard,), node.location),
        Call(new.form.name, node.operands, (form,), node.location),
        replace(node, operands=(*node.operands, guard.name, form.name)),
    ]
