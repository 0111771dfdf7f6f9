"""Canonicalise a program, cut it into groups, and make equal groups one function: the first stage of a build."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from compiler.dialects import te
from compiler.dialects.functions import functions
from compiler.graph.canonical import Canonical, canonical
from compiler.graph.grouping import RULES, Rule, check_groups, has_groups, outline_groups
from compiler.graph.grouping.constants import with_constants
from compiler.graph.grouping.equal_groups import MergedGroups, merge_equal_groups
from compiler.graph.provenance import Provenance
from compiler.graph.read import read
from compiler.graph.tree import Graph
from compiler.graph.write import write

UserNames: TypeAlias = Mapping[str, Provenance]
"""Map the name of a function to the user's names of its blocks, axes and values."""


Rewrite: TypeAlias = Callable[[Graph], Canonical | None]
"""A function that returns another form of a canonical graph, with inputs and results in the same order, or None to keep
the graph."""


@dataclass(frozen=True)
class GroupedModule:
    """A program that is cut into groups, with the user's names.

    names: the user's names of the blocks, axes and values of each function, by the function's name; for a group, those
    of its first call. hashes: the canonical hash of each group, by the group's name. Both are empty if the module is
    unchanged.

    >>> A = te.placeholder((4,), name="A")
    >>> cut = strata.driver.group_program(te.function("f", [A], te.nn.exp(A, name="B")), single=True)
    >>> list(cut.hashes), list(cut.names)
    (['group_0'], ['f', 'group_0'])
    """

    module: ModuleOp
    names: UserNames
    hashes: Mapping[str, str] = field(default_factory=dict)


def grouped_module(x: object, rules: Sequence[Rule] = RULES) -> ModuleOp:
    """Build the module of a te function in canonical form, cut into canonical groups.

    Public functions keep the names of their arguments and results. `x` is a module or an object with the attribute
    `module`, else TypeError is raised. A program that fits one group is returned unchanged, not even canonical. So are
    programs of another level, and programs with groups, which are verified: Refusal if they are invalid. Raises
    InputError for a rule that names a missing compute.

    >>> A, W = te.placeholder((4, 8), name="A"), te.placeholder((8, 4), name="W")
    >>> module = strata.graph.grouped_module(te.function("f", [A, W], [te.nn.matmul(A, W), te.nn.sum(A, axis=0)]))
    >>> [function.sym_name.data for function in strata.dialects.functions(module)]
    ['f', 'group_0', 'group_1']
    """
    return group_program(x, rules).module


def group_program(
    x: object, rules: Sequence[Rule] = RULES, single: bool = False, rewrite: Rewrite | None = None
) -> GroupedModule:
    """Build the module of `grouped_module`, with the same errors, and return it with the user's names and the hashes of
    the groups. Raises TypeError for an `x` without a module, Refusal for an invalid program with groups, and InputError
    for a rule that names a missing compute.

    With `single`, a function that fits one group becomes a call of that group. `rewrite` may replace canonical
    functions before they are cut into groups, None none; if it replaces any, `single` is implied.

    >>> A = te.placeholder((4,), name="A")
    >>> cut = strata.driver.group_program(te.function("f", [A], te.nn.exp(A, name="B")), single=True)
    >>> [function.sym_name.data for function in strata.dialects.functions(cut.module)]
    ['f', 'group_0']
    """
    module = x if isinstance(x, ModuleOp) else getattr(x, "module", None)
    if not isinstance(module, ModuleOp):
        raise TypeError(f"{type(x).__name__} has no module")
    if not any(isinstance(op, te.ComputeOp | te.GatherOp) for op in module.walk()):
        return GroupedModule(module, {})
    if has_groups(module):
        check_groups(module)
        return GroupedModule(module, {})
    written = [canonical(read(function)) for function in functions(module)]
    forms = written if rewrite is None else [_rewritten(form, rewrite) for form in written]
    divisions = outline_groups([form.graph for form in forms], rules, single or forms != written)
    if not any(division.groups for division in divisions):
        return GroupedModule(module, {})
    merged = merge_equal_groups(
        [division.main for division in divisions], (graph for division in divisions for graph in division.groups)
    )
    names = {form.graph.name: form.names for form in forms}
    callers = {graph.name: names[division.main.name] for division in divisions for graph in division.groups}
    canonical_parts = _canonical(merged, names | {name: callers[origin] for name, origin in merged.origins.items()})
    with_literals = with_constants(canonical_parts.parts)
    if with_literals != canonical_parts.parts:
        canonical_parts = _canonical(with_literals, canonical_parts.names)
    canonical_module = ModuleOp(
        list(map(write, (*canonical_parts.parts.mains, *canonical_parts.parts.groups))), dict(module.attributes)
    )
    _name_interface(canonical_module, module)
    return GroupedModule(canonical_module, canonical_parts.names, canonical_parts.hashes)


def _rewritten(form: Canonical, rewrite: Rewrite) -> Canonical:
    """Apply `rewrite` to a canonical function; return the same object if `rewrite` returns None."""
    rewriting = rewrite(form.graph)
    return form if rewriting is None else replace(rewriting, names=rewriting.names.after(form.names))


@dataclass(frozen=True)
class _CanonicalParts:
    """A grouped module in canonical form. parts: its callers and groups. names: the user's names in each function, by
    the function's name. hashes: the hash of each group, by its name."""

    parts: MergedGroups
    names: UserNames
    hashes: Mapping[str, str]


def _canonical(parts: MergedGroups, names: UserNames) -> _CanonicalParts:
    """Canonicalise callers and groups, and merge groups that are then equal. `names` maps each function to the user's
    names in it."""
    forms = {graph.name: canonical(graph, keep_signature=False) for graph in parts.groups}
    mains = [canonical(graph, callees=forms) for graph in parts.mains]
    merged = merge_equal_groups([form.graph for form in mains], [form.graph for form in forms.values()])
    provenance = {form.graph.name: form.names.after(names[form.graph.name]) for form in mains}
    provenance |= {name: forms[origin].names.after(names[origin]) for name, origin in merged.origins.items()}
    return _CanonicalParts(merged, provenance, {name: forms[origin].hash for name, origin in merged.origins.items()})


def _name_interface(parts: ModuleOp, original: ModuleOp) -> None:
    """Rename the arguments and results of the functions of `parts` as in the functions of the same names of
    `original`."""
    by_name = {function.sym_name.data: function for function in functions(original)}
    for function in functions(parts):
        before = by_name.get(function.sym_name.data)
        if before is not None:
            for value, former in zip(_interface(function), _interface(before), strict=True):
                value.name_hint = former.name_hint


def _interface(function: FuncOp) -> list[SSAValue]:
    end = function.body.block.last_op
    return [*function.args, *(end.operands if end is not None else ())]
