"""`page_part`: all about one function of a program, as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from xdsl.dialects.builtin import ModuleOp

from compiler.analysis.verify.prove import verify_schedule
from compiler.dialects.functions import find_function
from compiler.explain.builds import Builds, marked_builds
from compiler.explain.code import LoopCode, group_copies
from compiler.explain.explanation import explain
from compiler.explain.nests import LoopNest, paths
from compiler.explain.text import details, loop_label
from compiler.opt.diagnostics import PROGRAM_ERRORS
from compiler.pipeline.parser import parse_passes
from compiler.pipeline.passes import TO_LOOPS
from compiler.pipeline.source import argument, level_of
from compiler.pipeline.to_llvm import passes_from, with_policy
from compiler.program.read import read
from compiler.program.tree import Program
from compiler.schedule import Schedule
from compiler.targets.gpus import GpuTarget
from compiler.targets.registry import gpu_of
from compiler.targets.target import Target
from compiler.targets.timing import kernel_times
from compiler.targets.timing.time import KernelTime
from compiler.view.equations import equations_of
from compiler.view.nests import low_tree, memory, origin_text, tree
from compiler.view.queries import recorded
from compiler.view.records import IrStage, Json, PagePart, PageProof, ScriptStep
from compiler.view.stages import after_passes, assembly_stage, compared, llvm_stage, module_stage, stage
from compiler.view.steps import stepped
from compiler.view.subject import PageSubject

TERMS = ("issue", "arithmetic", "load_store", "traffic", "latency", "fetch")
"""The terms of the estimated time of a launch: see KernelTime."""
NO_SCRIPT = "The loops are as written: there is no script."
MAX_CODE = 12
"""The number of machine loops, copies counted once, that are shown."""
MAX_ASSEMBLY = 20_000
"""The number of characters of a machine loop that are shown."""


@dataclass(frozen=True)
class PageTarget:
    """The settings that the functions of a page are compiled with: a floating-point policy, for the threads of a CPU
    or for an architecture of another target."""

    policy: str = "contract"
    threads: int = 1
    target: Target | None = None
    arch: str = ""


ON_CPU = PageTarget()


@dataclass
class _Draft:
    """A part in the making; the fields are those of PagePart."""

    stages: list[IrStage] = field(default_factory=list)
    nests: list[list[Json]] = field(default_factory=list)
    steps: list[ScriptStep] = field(default_factory=list)
    memory: Mapping[int, Json] = field(default_factory=dict)
    code: Sequence[Json] = ()
    proof: PageProof | None = None
    notes: dict[str, str] = field(default_factory=dict)

    def part(self, name: str, facts: Sequence[str]) -> PagePart:
        """The part, with the lines that each stage changes."""
        stages = compared(self.stages)
        return PagePart(name, facts, stages, self.nests, self.steps, self.memory, self.code, self.proof, self.notes)


def page_part(subject: PageSubject, way: PageTarget = ON_CPU) -> PagePart:
    """Everything about a function: a refused script ends the page at its step, and an error of the compiler at a level
    is the note of the tabs that need it. Raises ScheduleError for a script that is none."""
    draft = _Draft()
    module = subject.module
    if subject.te is not None:
        lowered = subject.te.clone()
        draft.stages += [module_stage("te", lowered), *after_passes(lowered, parse_passes(TO_LOOPS))]
    if subject.script is None or subject.unscheduled is None:
        draft.notes["script"] = draft.notes["proof"] = NO_SCRIPT
        if subject.original is not None and module is not None:
            draft.proof = proof(read(find_function(module)), subject.original)
            del draft.notes["proof"]
    else:
        scheduled = _scheduled(draft, subject, subject.unscheduled)
        module = scheduled
    if module is not None:
        _compiled(draft, module, way, subject.te is not None)
    return draft.part(subject.name, [*_computes(subject), *subject.facts])


def _computes(subject: PageSubject) -> list[str]:
    """The first and the last compute of a function, and the part of the user's model that the last one is of."""
    blocks = [] if subject.unscheduled is None else list(subject.unscheduled.blocks.values())
    if not blocks:
        return []
    names = " .. ".join(dict.fromkeys((blocks[0].label, blocks[-1].label)))
    return list(filter(None, (names, origin_text(blocks[-1].location)[:80])))


def _scheduled(draft: _Draft, subject: PageSubject, unscheduled: Program) -> ModuleOp | None:
    """Apply the script of a subject step by step; return the module with the scheduled loops, None if it is refused."""
    assert subject.script is not None
    schedule, start = Schedule(unscheduled), perf_counter()
    if not draft.stages:
        draft.stages.append(module_stage("loop", schedule.original))
    draft.nests, draft.steps = stepped(schedule, subject.script)
    if draft.steps and draft.steps[-1].refusal is not None:
        place = f"step {len(draft.steps)} of the script is refused"
        draft.stages.append(module_stage("apply-schedule, up to the refused step", schedule.module))
        draft.memory = memory(schedule.program)
        draft.notes |= {
            "code": f"There is no machine code: {place}.",
            "proof": f"There is nothing to prove: {place}. Its witness is beside the step.",
        }
        return None
    draft.stages.append(module_stage("apply-schedule", schedule.module, perf_counter() - start))
    draft.proof = proof(schedule.program, unscheduled)
    return schedule.module


def proof(scheduled: Program, original: Program) -> PageProof:
    """The verdict about a scheduled program, with the claims of the proof in order, and the equations of the
    original."""
    with recorded() as queries:
        verdict = verify_schedule(scheduled, original)
    claims = [query for query in queries if query.kind == "claim"]
    equations = [text for block in original.blocks.values() for text in equations_of(block)]
    return PageProof(verdict.answer, verdict.reason, claims, equations)


def _compiled(draft: _Draft, module: ModuleOp, way: PageTarget, has_te: bool) -> None:
    """Add what is compiled: the loops and their memory, the stages down to assembly, the machine loops."""
    level, low, name = level_of(module), module.clone(), find_function(module).sym_name.data
    if not draft.steps:
        draft.stages.append(module_stage("reorder-contiguous" if has_te else level, module))
    if level == "loop":
        program = read(find_function(module))
        draft.nests.append(tree(program.body))
        draft.memory = memory(program)
    try:
        if way.target is not None:
            _device_code(draft, low, way.target, way)
            return
        draft.stages += after_passes(low, passes_from(level, way.policy))
        arguments = [value.name_hint or "" for value in find_function(low, name).args]
        start = perf_counter()
        built = marked_builds(low, name, module if level == "loop" else None, way.threads)
        _machine_code(draft, built, arguments, perf_counter() - start)
    except PROGRAM_ERRORS as error:
        draft.notes["code"] = f"There is no machine code: {error}"


def _device_code(draft: _Draft, module: ModuleOp, target: Target, way: PageTarget) -> None:
    """Lower loops to a target's kernels, in place; add the stages, the text, and the estimated time of each launch.
    Raises LoweringError for loops that the target cannot have, TargetError for a launch beyond the architecture."""
    name = find_function(module).sym_name.data
    arguments = [argument(buffer) for buffer in read(find_function(module)).arguments]
    draft.stages += after_passes(module, with_policy(way.policy, parse_passes(target.passes["loop"])))
    kernel = target.make_kernel(module, find_function(module, name), arguments, way.policy, way.arch)
    text = target.texts[0]
    draft.stages.append(stage(text, target.text(kernel, text)))
    if target.family == GpuTarget.family:
        times = kernel_times(module, gpu_of(target.name, way.arch), name)
        draft.code = [_launch_code(n, time) for n, time in enumerate(times, 1)]
    else:
        draft.notes["code"] = f"The machine code of {target.name} is its compiler's."


def _launch_code(number: int, time: KernelTime) -> Json:
    """A launch, in the form of `_loop_code`: the cycles of the busiest multiprocessor by the terms of the estimate."""
    terms = {term: getattr(time, term) for term in TERMS}
    return {
        "number": number,
        "copies": 1,
        "label": time.name,
        "path": [],
        "blocks": [],
        "origin": "",
        "details": [f"{time.resident_warps} warps in {time.waves} waves, {time.bytes_in_flight:.0f} bytes in flight"],
        "cycles": time.cycles,
        "seconds": time.seconds,
        "limit": time.bound,
        "percent": None,
        "pressure": {term: cycles for term, cycles in terms.items() if cycles >= 0.05},
        "text": "",
    }


def _machine_code(draft: _Draft, built: Builds, arguments: Sequence[str], seconds: float) -> None:
    """Add the LLVM IR, the assembly, which LLVM has made in `seconds`, and its machine loops; of a program at the low
    level also its loops. Raises TargetError for an architecture whose assembly has no parser."""
    explanation = explain(built)
    blocks = {} if built.program is None else built.program.blocks
    texts = {label: origin_text(block.location) for label, block in blocks.items()}
    loops = {number: (path[-1].name, _joined(path[-1], texts)) for number, path in paths(explanation.nests).items()}
    draft.stages.append(llvm_stage(built.kernel.text("llvm"), arguments, loops))
    draft.stages.append(assembly_stage(built.assembly, loops, seconds))
    if built.program is None:
        draft.nests.append(low_tree(explanation.nests))
    copies = group_copies(explanation.codes)
    draft.code = [_loop_code(group, texts) for group in copies[:MAX_CODE]]
    if not copies:
        draft.notes["code"] = "The machine code has no loops."
    elif len(copies) > MAX_CODE:
        draft.notes["code"] = f"{len(copies) - MAX_CODE} more machine loops are not shown."


def _joined(nest: LoopNest, origins: Mapping[str, str]) -> str:
    """The parts of the user's model that a loop computes, by the `origins` of blocks."""
    return ", ".join(dict.fromkeys(origins[label] for label in nest.blocks if origins.get(label)))


def _loop_code(copies: Sequence[LoopCode], origins: Mapping[str, str]) -> Json:
    """A machine loop, with the number of its copies: its label, the names of the source loops around it and its blocks,
    its bound, its assembly, and the parts of the user's model in it, by the `origins` of blocks."""
    code = copies[0]
    blocks = code.path[-1].blocks if code.path else ()
    return {
        "number": code.number,
        "copies": len(copies),
        "label": loop_label(code),
        "path": [nest.name for nest in code.path],
        "blocks": list(blocks),
        "origin": _joined(code.path[-1], origins) if code.path else "",
        "details": [line.strip() for line in details(code)][1:-2],
        "cycles": code.estimate.cycles,
        "limit": code.estimate.limit,
        "percent": code.percent,
        "pressure": {name: cycles for name, cycles in code.estimate.pressure.items() if cycles >= 0.05},
        "text": code.text if len(code.text) <= MAX_ASSEMBLY else f"{code.text[:MAX_ASSEMBLY]}\n...",
    }
