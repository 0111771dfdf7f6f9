"""`Case`: a te program, perhaps with a script, and a part of a plugin that must keep its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler import universe
from compiler.dialects.functions import find_function
from compiler.dialects.parser import Parser
from compiler.fuzz.programs import random_arrays
from compiler.fuzz.results import Arrays, difference, public_function, results
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import PIPELINES, run
from compiler.support.errors import InputError, StrataError
from compiler.support.plugins import RULES, Part, PluginError
from compiler.types.dtypes import row_of

KINDS = ("pass", "primitive", "program law", "group law", "search rule", "GPU search rule", "grouping rule")
"""The kinds of parts that are fuzzed."""


@dataclass(frozen=True)
class Case:
    """A part of a plugin, and the text of a program at the te level that it is tried on. For a primitive the text also
    has a script, which applies it. seed: that of the program's inputs."""

    part: Part
    text: str
    seed: int = 0

    def fault(self) -> str | None:
        """Return a sentence on the first fault: a wrong result, an exception other than a refusal, an invalid program,
        or a refuted schedule; "" if there is none; None if the part refuses the program (a pass at every level), leaves
        it alone, or is a primitive that the script does not apply. A refusal of what a search or grouping rule yields
        is a fault. Raises InputError for a text that is no te program with one public function that has results, and
        xDSL's ParseError."""
        module = Parser(universe.context(), self.text, "<case>").parse_module()
        sequences = [op for op in module.ops if isinstance(op, NamedSequenceOp)]
        function = public_function(module)
        if function is None or not function.function_type.outputs:
            raise InputError("a case is a te program with one public function, which has results")
        script = "\n".join(map(str, sequences))
        for sequence in sequences:
            module.body.block.erase_op(sequence)
        if self.part.kind == "primitive" and not any(_applies(op, self.part.name) for op in sequences):
            return None
        arrays = _inputs(function, self.seed)
        expected = results(module, arrays, [])
        try:
            outcomes = list(self._outcomes(module, script))
        except PluginError as error:  # a crash of the part
            return str(error)
        except StrataError as error:
            return str(error) if self.part.kind in RULES else None
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        for outcome in outcomes:
            if isinstance(outcome, str):
                return outcome
            try:
                fault = difference(results(outcome, arrays, expected), expected)
            except StrataError as error:
                fault = str(error)
            if fault:
                return fault
        return "" if outcomes else None

    def _outcomes(self, module: ModuleOp, script: str) -> Iterator[ModuleOp | str]:
        """Yield the programs after the part, or its faults: after a pass, at each level; under the script; in the forms
        of a law; under the schedules of a search rule; in the groups of a grouping rule."""
        if self.part.kind == "pass":
            yield from self._passed(module)
        elif self.part.kind == "primitive":
            yield from _scheduled(module, script)
        elif self.part.kind == "grouping rule":
            yield from _grouped(module, self.part)
        elif self.part.kind in RULES:
            yield from _derived(module, self.part)
        else:
            yield from self._forms(module)

    def _passed(self, module: ModuleOp) -> Iterator[ModuleOp]:
        """Yield the program after the pass, at each level, te, loop and low, at which the pass changes it and does not
        refuse it."""
        for passes in ("", "te-to-loop", PIPELINES["te-to-low"]):
            lowered = module.clone()
            run(universe.context(), lowered, parse_passes(passes))
            before = str(lowered)
            try:
                run(universe.context(), lowered, [self.part.value()], verify=True)
            except StrataError:
                continue
            if str(lowered) != before:
                yield lowered

    def _forms(self, module: ModuleOp) -> Iterator[ModuleOp]:
        """Yield the forms of the law for the canonical program, without constant inputs and with all constant."""
        from compiler.alternatives.law import Conditions
        from compiler.graph.canonical import canonicalize
        from compiler.graph.read import read
        from compiler.graph.write import write
        from compiler.types.machines import host

        graph = read(find_function(canonicalize(module)))
        names = frozenset(value.name for value in graph.inputs)
        for constants in (frozenset[str](), names):
            for form in self.part.value.forms(graph, Conditions(host(), "fast", constants=constants)):
                yield ModuleOp([write(form.graph)])


def _applies(script: NamedSequenceOp, primitive: str) -> bool:
    return any(op.name == f"sched.{primitive}" for op in script.walk())


def _scheduled(module: ModuleOp, script: str) -> Iterator[ModuleOp]:
    """Yield the loops of a program under a script."""
    from compiler.schedule import Schedule

    lowered = module.clone()
    run(universe.context(), lowered, parse_passes("te-to-loop"))
    schedule = Schedule(lowered)
    schedule.apply(Parser(universe.context(), script, "<script>").parse_module())
    yield schedule.module


def _derived(module: ModuleOp, part: Part) -> Iterator[ModuleOp | str]:
    """Yield the loops of a program under the schedules of a search rule, for two threads or a GPU, each choice at its
    default, or a sentence for one that is refuted: first the schedule of the first alternatives, whose steps are not
    judged, as in a build; then those whose steps are judged. Nothing for a program that the rule leaves as it is."""
    from compiler.schedule import Schedule
    from compiler.space.derivation import one_by_one, preferred
    from compiler.targets.gpus import DEFAULT_ARCH
    from compiler.targets.registry import DEFAULT_GPU, gpu_of
    from compiler.types.machines import host

    lowered = module.clone()
    run(universe.context(), lowered, parse_passes("te-to-loop"))
    schedule, rules = Schedule(lowered), (part.guarded,)
    machine = gpu_of(DEFAULT_GPU, DEFAULT_ARCH) if part.kind.startswith("GPU") else host()
    first = preferred(schedule, rules, machine, 2, judged=False)
    for derivation in (first, *one_by_one(schedule, rules, machine, 2)):
        scheduled = derivation.draft.schedule
        if scheduled.program is not schedule.program:
            verdict = scheduled.verify()
            yield f"{derivation.name} is {verdict}" if verdict.answer == "refuted" else scheduled.module


def _grouped(module: ModuleOp, part: Part) -> Iterator[ModuleOp]:
    """Yield a program in canonical form, cut into groups by a grouping rule before the compiler's rules; nothing if the
    rule decides about no compute of it."""
    from compiler.graph import grouping
    from compiler.graph.canonical import canonicalize
    from compiler.graph.read import read

    canonical = canonicalize(module)
    if grouping.decisions(read(find_function(canonical)), (part.guarded,)):
        yield grouping.group(canonical, (part.guarded, *grouping.RULES))


def _inputs(function: FuncOp, seed: int) -> Arrays:
    """Return random arrays for the arguments of a te function. Raises InputError for an argument that is no tensor of a
    known element type."""
    rows = []
    for type in function.function_type.inputs:
        row = row_of(type.element_type) if isinstance(type, TensorType) else None
        if not isinstance(type, TensorType) or row is None:
            raise InputError(f"a case is a program at the te level: an argument is {type}")
        rows.append((type.get_shape(), row.name))
    return random_arrays(rows, seed)
