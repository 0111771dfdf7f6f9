"""What a page shows, as data: `ProgramPage` has parts, a part has stages, steps, nests, memory, code and a proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from compiler.support.spans import Span
from compiler.view.queries import Query

Json: TypeAlias = dict[str, Any]  # texts, numbers, lists and objects by their names


@dataclass(frozen=True)
class IrStage:
    """The IR after a pass.

    text: of the IR; a note replaces the lines beyond the limit. changed: the intervals of lines that differ from the
    stage before, each (first and end there, first and end here). seconds: of the pass; None for a text that no pass
    produced. aliases: maps names of the text to the names that other stages have for them. places: modules, nodes
    and lines of the user's source. runs: the lines, from 0, at which the place changes, each with the position of
    the new one in `places`, -1 for none."""

    name: str
    text: str
    seconds: float | None = None
    changed: Sequence[tuple[int, int, int, int]] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    places: Sequence[str] = ()
    runs: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True)
class WitnessInstance:
    """An instance of a refusal as text, the values of its block's axes, and how it uses the element, as a verb."""

    name: str
    axes: Mapping[str, int]
    use: str


@dataclass(frozen=True)
class StepRefusal:
    """The refusal of a step: its sentence; the two instances that witness it, the element that both use, and the
    concurrent loop whose iterations they are; without a witness these are empty. span: the place of the step in a file,
    if it is from one."""

    sentence: str
    instances: Sequence[WitnessInstance] = ()
    element: str = ""
    loop: str = ""
    span: Span | None = None


@dataclass(frozen=True)
class ScriptStep:
    """A step of a script: its text; the position among `nests` of the loops after it; its seconds and its queries to
    isl, of which `omitted` more are not listed; `refusal` if it was refused."""

    text: str
    nest: int
    seconds: float
    queries: Sequence[Query] = ()
    omitted: int = 0
    refusal: StepRefusal | None = None


@dataclass(frozen=True)
class PageProof:
    """The verdict about a scheduled program, its claims in the order of the proof, and the equations of the original;
    without a claim there was nothing to prove."""

    answer: str
    reason: str
    claims: Sequence[Query] = ()
    equations: Sequence[str] = ()


@dataclass(frozen=True)
class PagePart:
    """A function of a program.

    facts: lines of the list of parts. nests: the loops before the script and after the steps that changed them, the
    last ones are the loops that were compiled. memory: by the number of a loop of these. code: machine loops. notes:
    by the name of a tab, why it has nothing to show.
    """

    name: str
    facts: Sequence[str]
    stages: Sequence[IrStage]
    nests: Sequence[Sequence[Json]] = ()
    steps: Sequence[ScriptStep] = ()
    memory: Mapping[int, Json] = field(default_factory=dict)
    code: Sequence[Json] = ()
    proof: PageProof | None = None
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def refusal(self) -> StepRefusal | None:
        """The refusal of the script; None if all steps apply."""
        return self.steps[-1].refusal if self.steps else None


@dataclass(frozen=True)
class ProgramPage:
    """A page: the program's name, sentences about it and the machine, the caches of that in bytes, and its parts."""

    name: str
    sentences: Sequence[str]
    caches: Mapping[str, int]
    parts: Sequence[PagePart]

    @property
    def refusal(self) -> StepRefusal | None:
        """The first refusal of a part's script; None if there is none."""
        return next((part.refusal for part in self.parts if part.refusal is not None), None)

    @property
    def fault(self) -> str | None:
        """The sentence of the refusal, or of the first part that is not proved to compute its original; None without
        one."""
        if self.refusal is not None:
            return f"Refused: {self.refusal.sentence}"
        proofs = (part.proof for part in self.parts if part.proof is not None)
        return next((f"{each.answer.capitalize()}: {each.reason}" for each in proofs if each.answer != "proved"), None)
