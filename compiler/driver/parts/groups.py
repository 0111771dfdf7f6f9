"""`GroupedProgram`: a whole program as the different groups that it calls; `Group`: one of them, alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler.alternatives import PROGRAM_LAWS, Conditions, Law
from compiler.alternatives.program import AppliedForm, preferred
from compiler.database import WholeProgram
from compiler.dialects.calls import callees
from compiler.dialects.functions import find_function
from compiler.dialects.numbers import dtype_of
from compiler.driver.main.occurrences import ConstantSplit, split_constant_calls
from compiler.driver.main.slices import joins, sliced
from compiler.graph.grouped_module import UserNames, group_program
from compiler.graph.grouping import RULES, Rule, has_groups
from compiler.graph.main import read_tensors
from compiler.graph.provenance import Provenance
from compiler.graph.read import read as read_graph
from compiler.graph.user_names import graph_with_user_names
from compiler.graph.write import write
from compiler.lowering.te_to_loop.nests import arguments_of
from compiler.pipeline.loops import tree_of
from compiler.pipeline.source import level_of, parse
from compiler.program.tree import Program
from compiler.program.write import write as write_loops
from compiler.support.errors import InputError
from compiler.support.files import read
from compiler.support.text import unknown
from compiler.targets.arguments import Argument

OWN = Provenance()
"""The identity mapping of names."""


@dataclass(frozen=True)
class Group:
    """A group of a program. module: its canonical function alone. constants: the positions of the inputs that are
    constant in all its calls. occurrences: the number of its calls in a run. names: maps canonical names to those at
    its first call. hash: the canonical hash of its computation, independent of names; empty if the caller's program had
    groups already."""

    name: str
    module: ModuleOp
    constants: tuple[int, ...]
    occurrences: int = 1
    names: Provenance = OWN
    hash: str = ""

    @cached_property
    def tree(self) -> Program:
        """The unscheduled loops, with constant inputs marked."""
        program = tree_of(self.module)
        names = (program.arguments[n].name for n in self.constants)
        return replace(program, constants=tuple(dict.fromkeys([*program.constants, *names])))

    @cached_property
    def loops(self) -> ModuleOp:
        """The `tree` as IR."""
        return ModuleOp([write_loops(self.tree)])

    @property
    def module_with_user_names(self) -> ModuleOp:
        """The module under the names of the program, for people to read."""
        return ModuleOp([write(graph_with_user_names(read_graph(find_function(self.module)), self.names))])


@dataclass(frozen=True)
class GroupedProgram:
    """A te module whose public function calls groups.

    constants: the positions of the constant inputs. names: the user's names of the inputs. user_names: by function
    the mapping of canonical names to the user's. hashes: the known canonical hashes of groups, by name. written: for
    each function that replaces a group in another form, the name of the group as written. laws: the laws that changed
    the whole program, in the order of their first use.
    """

    module: ModuleOp
    constants: tuple[int, ...] = ()
    names: tuple[str, ...] = ()
    user_names: UserNames = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict)
    laws: tuple[str, ...] = ()

    def module_names(self, arrays: Mapping[str, object]) -> dict[str, object]:
        """Rename arrays of inputs from the user's names to the module's."""
        inputs = [buffer.name for buffer in read_tensors(self.function).inputs]
        return {inputs[self.names.index(name)]: array for name, array in arrays.items()}

    @property
    def arguments(self) -> tuple[Argument, ...]:
        """The inputs, under the user's names."""
        inputs = read_tensors(self.function).inputs
        return tuple(Argument(n, b.shape, dtype_of(b.element)) for n, b in zip(self.names, inputs, strict=True))

    @cached_property
    def function(self) -> FuncOp:
        """The public function, of constants and calls."""
        return find_function(self.module)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The different groups in the order of their first calls. Excluded are groups that depend on constants alone,
        which run once; concatenations whose parts are written into their slices; and groups that a guard skips."""
        calls: dict[str, list[tuple[bool, ...]]] = {}
        for name, constants in self._calls():
            calls.setdefault(name, []).append(constants)
        return tuple(self._group(name, constants_of_calls) for name, constants_of_calls in calls.items())

    def stored(self, name: str) -> WholeProgram:
        """The program in the form that databases store, under a name."""
        return WholeProgram(name, str(self.module), self.constants)

    def group(self, name: str) -> Group:
        """A group by its name, which may begin with "@" or the program's name. Raises InputError for an unknown one."""
        program, by_name = self.function.sym_name.data, {group.name: group for group in self.groups}
        short_name = name.removeprefix(f"{program}.").removeprefix("@")
        if short_name not in by_name:
            raise InputError(f"{unknown('group', short_name, by_name)} ({program} has {', '.join(by_name)})")
        return by_name[short_name]

    @cached_property
    def constant_split(self) -> ConstantSplit:
        """Main split into the calls that run once and the steps of each run, with parts of concatenations as slices."""
        main = read_tensors(self.function)
        parts = split_constant_calls(main, {main.inputs[n].name for n in self.constants} | main.elements.keys())
        return replace(parts, main=sliced(parts.main, joins(callees(self.function)), main.buffers))

    def _calls(self) -> Iterator[tuple[str, tuple[bool, ...]]]:
        """Each call of a run that no guard skips: its callee, and for each operand whether it is constant."""
        for call in self.constant_split.main.calls:
            if call.guarded is None:
                yield call.callee, tuple(name in self.constant_split.constants for name in call.inputs)

    def _group(self, name: str, calls: Sequence[tuple[bool, ...]]) -> Group:
        constants = tuple(n for n, is_constant in enumerate(zip(*calls, strict=True)) if all(is_constant))
        module = ModuleOp([public(find_function(self.module, name))])
        return Group(name, module, constants, len(calls), self.user_names.get(name, OWN), self.hashes.get(name, ""))


def grouped_program_of(kept: WholeProgram) -> GroupedProgram:
    """The whole program that a database has stored. Raises ParseError or VerifyException for text that is no valid
    program, InputError for text that calls no groups or lacks the stated constants."""
    module = parse(kept.text, kept.name)
    if level_of(module) != "te" or not has_groups(module):
        raise InputError(f"{kept.name} calls no groups")
    program = GroupedProgram(module, kept.constants)
    inputs = len(program.function.body.block.args)
    if not all(isinstance(n, int) and 0 <= n < inputs for n in kept.constants):
        raise InputError(f"{kept.name} has {inputs} inputs: its constants are not among them")
    return program


def public(group: FuncOp) -> FuncOp:
    """Copy a group's function as a public function, without the mark of a group."""
    function = group.clone()
    function.attributes.pop("te.group", None)
    function.properties.pop("sym_visibility", None)
    return function


def grouped_program(
    x: object,
    constants: Sequence[str],
    single: bool = False,
    conditions: Conditions | None = None,
    laws: Sequence[Law] = PROGRAM_LAWS,
    rules: Sequence[Rule] = RULES,
) -> GroupedProgram | None:
    """Partition a te program into groups; None if it is a single group, unless `single`, or at another level.

    constants: the names of the constant inputs. conditions: if set, the program takes the form that `laws` prefer; a
    program that laws change always has groups. rules: of grouping. Raises InputError for constants that are no inputs,
    and the errors of `te_module`.
    """
    module = te_module(x)
    if module is None:
        return None
    function = find_function(module)
    fixed = input_positions(x, function, constants)
    applied_laws = list[AppliedForm]()
    rewrite = None if conditions is None else preferred(conditions, fixed, laws, applied_laws.append)
    cut = group_program(module, rules, single=single, rewrite=rewrite)
    if not has_groups(cut.module):
        return None
    names, law_names = _input_names(x, function), tuple(dict.fromkeys(applied.law for applied in applied_laws))
    return GroupedProgram(cut.module, fixed, names, cut.names, cut.hashes, laws=law_names)


def input_positions(x: object, function: FuncOp, constants: Sequence[str]) -> tuple[int, ...]:
    """The positions, ascending, of those inputs of a te program whose names are in `constants`: the names of tensors if
    `x` is a te function, else those in its IR, `function`. Raises InputError for the name of an output and for an
    unknown one."""
    names = _input_names(x, function)
    for name in constants:
        if name not in names:
            if name in {buffer.name for buffer in arguments_of(function)[len(names) :]}:
                raise InputError(f"'{name}' cannot be constant: it is an output of @{function.sym_name.data}")
            raise InputError(f"@{function.sym_name.data} has no input '{name}' (it has {', '.join(names) or 'none'})")
    return tuple(n for n, name in enumerate(names) if name in constants)


def te_module(x: object) -> ModuleOp | None:
    """The module of a te program: a te function, a module, MLIR text or the path of a file, which a text of one line is
    taken for; None for anything else. Raises InputError for a file that cannot be read, ParseError for text that is no
    IR."""
    if isinstance(x, PathLike) or (isinstance(x, str) and "\n" not in x):
        module = parse(read(x), str(x))
        return module if level_of(module) == "te" else None
    parsed = parse(x) if isinstance(x, str) else getattr(x, "module", x)
    return parsed if isinstance(parsed, ModuleOp) and level_of(parsed) == "te" else None


def _input_names(x: object, function: FuncOp) -> tuple[str, ...]:
    """The names of a program's inputs: of the tensors of a te function, else those of its IR, `argN` without a name."""
    names = [tensor.name for tensor in getattr(x, "inputs", ())]
    hints = [argument.name_hint or f"arg{n}" for n, argument in enumerate(function.body.block.args)]
    return (*names, *hints[len(names) :])
