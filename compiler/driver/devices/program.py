"""`build_joined`: the kernel of a te program of groups, from the cache or of the kernels of its groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from compiler import te
from compiler.alternatives.streamed import streamed_attention
from compiler.dialects.calls import callees
from compiler.dialects.dense import DenseAttr
from compiler.dialects.functions import constant_values
from compiler.driver.cache import entries
from compiler.driver.caching import (
    BuildRequest,
    CachedElements,
    arrays_of,
    cached_elements,
    known_elements,
    request_words,
)
from compiler.driver.devices.unit import DeviceCode, DeviceJob, DeviceUnit, compiled_unit
from compiler.driver.inputs import Signature, signature_of
from compiler.driver.main.constants import CallRewriter, with_steps
from compiler.driver.main.occurrences import ConstantSplit, split_constant_calls
from compiler.driver.main.slices import joins, sliced
from compiler.driver.parts.groups import OWN, GroupedProgram, public
from compiler.driver.units.pool import Team
from compiler.graph.concatenation import Slot
from compiler.graph.main import BufferCall, Main, Step, read_tensors
from compiler.graph.provenance import Provenance
from compiler.graph.read import read
from compiler.graph.write import write
from compiler.pipeline.loops import tree_of
from compiler.program.names import Names
from compiler.program.tree import Buffer, Program
from compiler.recipes.rules import FORM_RULES_OF
from compiler.targets.arguments import argument_dtype
from compiler.targets.groups import RUN_ONCE, GroupFacts
from compiler.targets.registry import target_named
from compiler.targets.target import AnyKernel, AnyProgram, JoinedParts, Target
from compiler.types.elements import element_bytes, is_unsigned


@dataclass(frozen=True)
class _ProgramConstants:
    """The entry of the cache beside the kernels of a program: its signature, and the constants that the program
    states."""

    signature: Signature
    stated_constants: tuple[CachedElements, ...]


def build_joined(request: BuildRequest, program: GroupedProgram, target: Target, arch: str) -> AnyKernel:
    """Return the kernel of a grouped te program, from the cache if possible. Equal groups are compiled once;
    computations on constants only run once, when the kernel is made. Raises InputError for constants that are no
    inputs, TargetError for those that do not fit, LoweringError and TargetError for a group that the target cannot
    run."""
    words = (*request_words(request), target.name, arch) if entries.is_enabled() else ()
    assert target.program_kind is not None
    cached, kernels = entries.get(_ProgramConstants, words), entries.get(target.program_kind, words)
    if cached is not None and kernels is not None:
        elements = known_elements(cached.stated_constants, request.module)
        return kernels.kernel(arrays_of(request, cached.signature, elements))
    main = read_tensors(program.function)
    stated = {main.inputs[n].name: value for n, value in constant_values(program.function).items()}
    stated |= {name: DenseAttr(dense) for name, dense in main.elements.items()}
    signature = signature_of(main)
    arrays = arrays_of(request, signature, stated)
    constants = [name for name in main.buffers if name in arrays]
    kernels = _joined(program, main, constants, target, arch, request.settings.policy)
    entries.put(_ProgramConstants(signature, cached_elements(stated, request.module)), words)
    entries.put(kernels, words)
    return kernels.kernel(arrays)


def _joined(
    program: GroupedProgram, main: Main, constants: Sequence[str], target: Target, arch: str, policy: str
) -> AnyProgram:
    """Compile the groups of a program for a target and architecture, and join their kernels; `constants` names main's
    constant buffers."""
    main = _with_user_names(main, program.user_names.get(main.name, OWN))
    parts = split_constant_calls(main, constants)
    slots = joins(callees(program.function))
    aligned = {name: slots[name] for name in slots if _are_aligned(main, name, slots[name], target.alignment)}
    calls = _Calls(program, replace(parts, main=sliced(parts.main, aligned, main.buffers)), (target.name, arch, policy))
    units = calls.units()
    rewriter = CallRewriter[DeviceCode](main, calls.main, {})
    for call, number in calls.before:
        rewriter.run_before(call, units[number])
    steps = [rewriter.step(call, units[number]) for call, number in calls.steps]
    leaves = {name: main.buffers[name] for name in constants}
    joined_main = with_steps(calls.main, steps, leaves | rewriter.prepared_buffers)
    before = [BufferCall(call.code.name, call.inputs, call.outputs) for call in rewriter.preparations]
    kernels = {code.name: code.kernel for unit in units for code in unit.codes}
    prepared = list(rewriter.prepared_buffers.values())
    joined_parts = JoinedParts(kernels, before, list(leaves.values()), prepared, calls.facts(units))
    return target.join(joined_main, joined_parts, arch)


def _with_user_names(main: Main, names: Provenance) -> Main:
    """Return main with its temporaries under the user's names, made unique; those without one keep theirs."""
    taken = Names(main.buffers.keys() - {buffer.name for buffer in main.temporaries})
    renamed = {buffer.name: taken.fresh(names.values.get(buffer.name, buffer.name)) for buffer in main.temporaries}

    def names_of(buffers: Sequence[str]) -> tuple[str, ...]:
        return tuple(renamed.get(name, name) for name in buffers)

    steps = tuple(
        replace(step, inputs=names_of(step.inputs), outputs=names_of(step.outputs))
        if isinstance(step, BufferCall)
        else replace(step, source=renamed.get(step.source, step.source))
        for step in main.steps
    )
    temporaries = tuple(replace(buffer, name=renamed[buffer.name]) for buffer in main.temporaries)
    return replace(main, temporaries=temporaries, steps=steps)


def _are_aligned(main: Main, name: str, slots: Sequence[Slot], alignment: int) -> bool:
    """Whether all operands of the concatenation `name` begin at multiples of `alignment` bytes in its result."""
    target = next(main.buffers[call.outputs[0]] for call in main.calls if call.callee == name)
    return all(slot.start * element_bytes(target.scalar) % alignment == 0 for slot in slots)


class _Calls:
    """The calls of main, each with the number of its unit: one unit for each function and set of constant inputs, and
    one for each type of buffer that main copies.

    before: the calls on constants only. steps: the others, copies included.
    """

    def __init__(self, program: GroupedProgram, parts: ConstantSplit, settings: tuple[str, str, str]) -> None:
        """Number the calls of `parts`; `settings` are the target, the architecture and the policy."""
        self.main, self._program, self._settings = parts.main, program, settings
        self._functions = {function.sym_name.data: function for function in callees(program.function)}
        self._names = Names({parts.main.name, *self._functions})
        self._jobs: dict[tuple[object, tuple[int, ...]], DeviceJob] = {}
        self.before = [(call, self._number(call.callee, ())) for call in parts.constant_calls]
        self.steps = [self._numbered(step, parts.constants) for step in parts.main.steps]

    def units(self) -> list[DeviceUnit]:
        """Compile the units, in parallel processes if that pays; return them by number."""
        jobs = list(self._jobs.values())
        with Team(helped=2) as team:
            return team.map([partial(compiled_unit, job) for job in jobs], [len(job.loops.blocks) for job in jobs])

    def facts(self, units: Sequence[DeviceUnit]) -> list[GroupFacts]:
        """Return the facts of the units by number: hash, number of calls, verdict and seconds of compilation."""
        numbers = [number for _, number in (*self.before, *self.steps)]
        once = {number for _, number in self.before} - {number for _, number in self.steps}
        facts = []
        for n, ((callee, _), job) in enumerate(self._jobs.items()):
            digest = self._program.hashes.get(str(callee), "")
            verdict = f"{RUN_ONCE}; {units[n].verdict}" if n in once else units[n].verdict
            facts.append(GroupFacts(job.name, digest, numbers.count(n), "model", verdict, units[n].seconds))
        return facts

    def _numbered(self, step: Step, constants: Collection[str]) -> tuple[BufferCall, int]:
        if isinstance(step, BufferCall):
            return step, self._number(step.callee, tuple(n for n, name in enumerate(step.inputs) if name in constants))
        buffer = self.main.buffers[step.target]
        kind = ((buffer.element, buffer.shape), ())
        if kind not in self._jobs:
            self._jobs[kind] = DeviceJob(self._names.fresh("copy"), _copy_loops(buffer), (), OWN, *self._settings)
        return BufferCall(self._jobs[kind].name, (step.source,), (step.target,)), list(self._jobs).index(kind)

    def _number(self, callee: str, constants: tuple[int, ...]) -> int:
        key = (callee, constants)
        if key not in self._jobs:
            is_first = all(job.name != callee for job in self._jobs.values())
            name = callee if is_first else self._names.fresh(callee)
            loops = tree_of(ModuleOp([public(self._functions[callee])]))
            names = self._program.user_names.get(callee, OWN)
            form = streamed_loops(self._functions[callee], self._settings[0], self._settings[2])
            self._jobs[key] = DeviceJob(name, loops, constants, names, *self._settings, form)
        return list(self._jobs).index(key)


def streamed_loops(function: FuncOp, target: str, policy: str) -> Program | None:
    """The loops of a group that is an attention by blocks of keys; None for a target without rules for that form, and
    for a group that `streamed_attention` does not rewrite under the policy."""
    if target_named(target).family not in FORM_RULES_OF:
        return None
    form = streamed_attention(read(public(function)), policy)
    return None if form is None else form.tied(tree_of(ModuleOp([write(form.graph)])))


def _copy_loops(buffer: Buffer) -> Program:
    """Return the loops of a function that copies a buffer to another buffer of its type."""
    source = te.placeholder(buffer.shape, argument_dtype(buffer.element, is_unsigned(buffer.element)), name="source")
    return tree_of(te.function("copy", [source], te.compute(buffer.shape, lambda *i: source[i], name="target")).module)
