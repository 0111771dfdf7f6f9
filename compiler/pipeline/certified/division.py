"""`division_verdict`: whether the groups of a program, put together, compute the program as given.

The groups are put in the place of their calls, and both programs are brought to canonical form, whose laws always hold.
Laws that are choices are applied again: those of whole programs to the program as given; those of groups to the group
as written, from which the form must come.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp, StringAttr

from compiler.alternatives import GROUP_LAWS, PROGRAM_LAWS, Conditions, offers, permitted
from compiler.alternatives.program import rewrite_graph
from compiler.analysis.verify.prove import Verdict
from compiler.certificate.text import VersionCertificate
from compiler.dialects.functions import find_function, functions
from compiler.graph.canonical import canonical
from compiler.graph.grouped_module import group_program
from compiler.graph.grouping.outline import LAW
from compiler.graph.guarded import guarded, without_guard
from compiler.graph.read import read
from compiler.graph.rename import with_operands, with_results
from compiler.graph.tree import Call, Compute, Constant, Graph
from compiler.graph.write import write
from compiler.pipeline.certified.texts import module_of
from compiler.program.names import Names
from compiler.support.errors import InputError

Graphs = Mapping[str, Graph]


class NotReplayed(Exception):
    """Raised if a law that a certificate names does not produce the certified form; the message is a clause."""


@dataclass(frozen=True)
class TeProgram:
    """A te program: its public function, `main`, and the functions that it calls, `callees`, by name."""

    main: Graph
    callees: Graphs


def division_verdict(version: VersionCertificate, weights: Collection[str], error: float | None) -> Verdict:
    """Prove that a program of groups computes the source program of a certificate. weights: the names of its constant
    inputs. error: the accepted rounding error of laws, None for that of the form as written. Raises InputError for
    texts that are no programs."""
    given, parts = program_of_text(version.source, "the program"), program_of_text(version.program, "the groups")
    conditions = Conditions(version.target, version.policy, error=error)
    constants = set(weights)
    try:
        whole = rewritten(given, constants, conditions, version.laws)
        _check_laws_of_groups(version, parts)
        written = as_written(parts, constants, conditions)
    except NotReplayed as failure:
        return Verdict("undecided", str(failure))
    if canonical(inlined(written)).hash == canonical(whole).hash:
        return Verdict("proved")
    foreign = ", ".join(_foreign(written, whole))
    reason = f"the program as given has no group like {foreign}" if foreign else "main's calls are not the program's"
    return Verdict("undecided", reason)


def program_of_text(text: str, subject: str) -> TeProgram:
    """Read a te program of a certificate, named `subject` in errors. Raises InputError for an invalid text."""
    module = module_of(text, subject)
    main = find_function(module)
    return TeProgram(read(main), {f.sym_name.data: read(f) for f in functions(module) if f is not main})


def inlined(program: TeProgram) -> Graph:
    """Return a program as one function, with each call replaced by the nodes of the function that it calls.

      %a = call @f(%x)  %b = call @g(%a)            // @f: B = exp(A), @g: D = C + C
    ->
      %a = exp(%x)  %b = %a + %a
    """
    graph, names, labels = program.main, Names(program.main.values), Names()
    values, nodes = dict[str, str](), list[Compute | Constant]()
    for node in graph.nodes:
        if not isinstance(node, Call):
            nodes.append(_labelled(with_operands(node, values), labels))
            continue
        callee = program.callees[node.callee]
        operands = (values.get(name, name) for name in node.operands)
        inner = dict(zip((value.name for value in callee.inputs), operands, strict=True))
        for each in callee.nodes:
            inner |= {value.name: names.fresh(value.name) for value in each.results}
            results = tuple(replace(value, name=inner[value.name]) for value in each.results)
            nodes.append(_labelled(with_results(with_operands(each, inner), results), labels))
        values |= {v.name: inner[name] for v, name in zip(node.results, callee.results, strict=True)}
    return replace(graph, nodes=tuple(nodes), results=tuple(values.get(name, name) for name in graph.results))


def _labelled(node: Compute | Constant | Call, labels: Names) -> Compute | Constant:
    """Return a node, a compute under a label that is unique in `labels`. Raises InputError for a call."""
    if isinstance(node, Call):
        raise InputError(f"the certificate has a group that calls '{node.callee}': calls are one level deep")
    if isinstance(node, Constant):
        return node
    return replace(node, block=replace(node.block, label=labels.fresh(node.block.label)))


def rewritten(given: TeProgram, weights: Collection[str], conditions: Conditions, laws: Collection[str]) -> Graph:
    """Return a program as one canonical function, after those of `laws` that are laws of whole programs. `weights`: the
    names of the constant inputs, which replace the constants in `conditions`. Raises NotReplayed for an unknown law,
    and one that does not apply."""
    known = [law for law in PROGRAM_LAWS if law.name in laws]
    names = {law.name for law in (*known, *GROUP_LAWS)}
    for law in laws:
        if law not in names:
            raise NotReplayed(f"the law '{law}' is not one of this release")
    graph, constants = inlined(given), set(weights)
    form = canonical(graph)
    positions = {n for n, value in enumerate(graph.inputs) if value.name in constants}
    fixed = frozenset(v.name for v, n in zip(form.graph.inputs, form.arguments, strict=True) if n in positions)
    rewriting = rewrite_graph(form.graph, replace(conditions, constants=fixed), known)
    applied = {each.law for each in rewriting.applied}
    for law_of_program in known:
        if law_of_program.name not in applied:
            raise NotReplayed(f"the law '{law_of_program.name}' does not apply to the program")
    return rewriting.graph


def _check_laws_of_groups(version: VersionCertificate, parts: TeProgram) -> None:
    """Raise NotReplayed unless the laws of groups that the certificate names are those of the groups' forms."""
    actual = {law_of(graph) for graph in parts.callees.values()} - {""}
    of_programs = {law.name for law in PROGRAM_LAWS}
    for named in ({group.law for group in version.groups if group.law}, version.laws.keys() - of_programs):
        if named != actual:
            words = [" and ".join(sorted(names)) or "none" for names in (named, actual)]
            raise NotReplayed(f"the certificate names laws of groups: {words[0]}; the groups have forms by {words[1]}")


def as_written(program: TeProgram, weights: set[str], conditions: Conditions) -> TeProgram:
    """Return a program of groups with each form by a law replaced by its group as written, without its guard. `weights`
    are the constant inputs of main.

        %guard = call @f_guard(%x)  %form = call @f_winograd(%x, %w)  %y = call @f(%x, %w, %guard, %form)
      ->
        %y = call @f(%x, %w)

    Raises NotReplayed if the law that a form names does not produce it from the group.
    """
    main, constant = program.main, _constant_values(program.main, weights)
    nodes, callees = list[Compute | Constant | Call](), dict(program.callees)
    for node in main.nodes:
        form = _FormCalls.of(program, node) if isinstance(node, Call) else None
        if form is None:
            nodes.append(node)
            continue
        form.check(replace(conditions, constants=form.constant_inputs(main, constant)))
        callees[form.call.callee] = form.written
        nodes.append(replace(form.call, operands=form.operands))
    used = {*main.results, *(name for node in nodes if not _has_law(program, node) for name in node.operands)}
    kept = [node for node in nodes if any(value.name in used for value in node.results)]
    for node in kept:
        if isinstance(node, Call) and _has_law(program, node):
            raise NotReplayed(f"the certificate lacks the group of which '{node.callee}' is the form")
    return TeProgram(replace(main, nodes=tuple(kept)), callees)


def law_of(graph: Graph) -> str:
    """Return the name of the law that produced a group's form; empty for a group as written."""
    law = graph.attributes.get(LAW)
    return law.data if isinstance(law, StringAttr) else ""


def _has_law(program: TeProgram, node: Compute | Constant | Call) -> bool:
    return isinstance(node, Call) and law_of(program.callees[node.callee]) != ""


def _constant_values(main: Graph, weights: set[str]) -> set[str]:
    """Return the names of main's values that depend on constants only; `weights` are the constant inputs."""
    constant = set(weights)
    for node in main.nodes:
        if isinstance(node, Constant) or (node.operands and constant.issuperset(node.operands)):
            constant |= {value.name for value in node.results}
    return constant


@dataclass(frozen=True)
class _FormCalls:
    """The calls of a group that has a form by a law: the guard's, the form's, and that of the group itself, `call`.

    written: the group without its guard. functions: the guard and the form. law: its name.
    """

    guard: Call
    form: Call
    call: Call
    written: Graph
    functions: tuple[Graph, Graph]
    law: str

    @staticmethod
    def of(program: TeProgram, call: Call) -> _FormCalls | None:
        """Return the calls of guard and form before a call of main; None if no guard may skip its group, or if its
        operands do not come from calls of a guard and of a form by a law."""
        found = guarded(program.callees[call.callee])
        if found is None:
            return None
        producers = program.main.producers
        guard, form = producers.get(call.operands[found.guard]), producers.get(call.operands[found.value])
        if not isinstance(guard, Call) or not isinstance(form, Call) or not _has_law(program, form):
            return None
        written = without_guard(program.callees[call.callee])
        if written is None:
            return None
        graphs = program.callees[guard.callee], program.callees[form.callee]
        return _FormCalls(guard, form, call, written, graphs, law_of(graphs[1]))

    @property
    def operands(self) -> tuple[str, ...]:
        """The operands of the group without its guard."""
        apart = {self.guard.results[0].name, self.form.results[0].name}
        return tuple(name for name in self.call.operands if name not in apart)

    def constant_inputs(self, main: Graph, constant: set[str]) -> frozenset[str]:
        """The names of the inputs of the group that are constant in all its calls; `constant` are the constant values
        of `main`. Requires guard and form as the last operands."""
        calls = [node for node in main.nodes if isinstance(node, Call) and node.callee == self.call.callee]
        inputs = enumerate(self.written.inputs)
        return frozenset(value.name for n, value in inputs if all(call.operands[n] in constant for call in calls))

    def check(self, conditions: Conditions) -> None:
        """Raise NotReplayed unless the law produces this form and guard from the group, on the same values."""
        laws = [law for law in GROUP_LAWS if law.name == self.law]
        for chosen in offers(self.written, conditions, laws):
            form, guard = chosen.form.graph, chosen.form.guard
            if guard is None or not permitted(chosen.form, conditions):
                continue
            by_name = dict(zip((value.name for value in self.written.inputs), self.operands, strict=True))
            expected = [tuple(by_name[value.name] for value in graph.inputs) for graph in (guard, form)]
            is_same = [_hash(graph) for graph in (guard, form)] == [_hash(graph) for graph in self.functions]
            if is_same and expected == [self.guard.operands, self.form.operands]:
                return
        raise NotReplayed(f"the law '{self.law}' does not give '{self.form.callee}' of '{self.call.callee}'")


def _hash(graph: Graph) -> str:
    """The canonical hash of a function without its attributes, such as the name of its law."""
    return canonical(replace(graph, attributes={})).hash


def _foreign(parts: TeProgram, whole: Graph) -> Iterator[str]:
    """Yield the names of the groups that are none of those into which this release divides the program `whole`."""
    divided = group_program(ModuleOp([write(whole)]), single=True)
    hashes = set(divided.hashes.values())
    called = {node.callee for node in parts.main.nodes if isinstance(node, Call)}
    for name in called:
        if canonical(parts.callees[name], keep_signature=False).hash not in hashes:
            yield name
