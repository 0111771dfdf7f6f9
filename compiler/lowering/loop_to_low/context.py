"""What is known while a function is lowered: buffers, loop variables, settled guards, the lane variable."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from xdsl.dialects.arith import AndIOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineSet

from compiler.affine import linear as lin
from compiler.affine.condition import Condition, conditions
from compiler.affine.linear import Linear
from compiler.errors import LoweringError
from compiler.lowering.loop_to_low.scopes import Scopes
from compiler.policies import Policy

MOST_COPIES = 4096
"""How many statements the unrolled code of one nest may have, those done lane by lane included: LLVM takes seconds."""

MOST_LANES = 128
"""How many lanes a vectorized loop may have: two registers of bytes, the smallest elements."""


class Part(Protocol):
    """What each thread keeps of a local buffer that all threads' stages use."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""

    def at(self, index: Sequence[Linear], threads: Collection[int]) -> list[Linear]:
        """The place in it of an index over loops, those in `threads` being thread loops."""


@dataclass
class Threads:
    """The hardware indices of a kernel: by the kind of a loop the value and the extent, and the variable that stands
    for it in conditions; the parts of local buffers that each thread keeps; whether a stage is being emitted; whether
    the kernel has copies that barriers wait for."""

    ids: dict[str, SSAValue]
    extents: dict[str, int]
    variables: dict[str, int]
    parts: Mapping[SSAValue, Part] = field(default_factory=dict)
    numbers: set[int] = field(default_factory=set)
    in_stage: bool = False
    copies_wait: bool = False


@dataclass
class Context:
    """The state of lowering one function.

    `facts` hold in the whole iterations of a loop that is cut, `ending` is true while its end is emitted. `threads` are
    those of a kernel, None on a processor. `copies` counts the statements of a nest's unrolled code.
    """

    scopes: Scopes
    policy: Policy
    buffers: dict[SSAValue, SSAValue] = field(default_factory=dict)
    names: dict[SSAValue, str] = field(default_factory=dict)
    variables: dict[SSAValue, int] = field(default_factory=dict)
    values: dict[int, Linear] = field(default_factory=dict)
    settled: list[set[Condition]] = field(default_factory=list)
    facts: list[Sequence[Condition]] = field(default_factory=list)
    ending: bool = False
    streamed: set[str] = field(default_factory=set)
    private: set[SSAValue] = field(default_factory=set)
    lane: int | None = None
    lanes: int = 0
    threads: Threads | None = None
    unrolled: bool = False
    copies: int = 0

    def add_copies(self, count: int, where: str) -> None:
        """Count statements of unrolled code. Raises LoweringError for more than MOST_COPIES in one nest."""
        self.copies += count
        if self.copies > MOST_COPIES:
            said = f"the unrolled code of its nest has {self.copies} statements, of {MOST_COPIES} at most"
            raise LoweringError(f"{where}: {said}")

    def form_of(self, iv: SSAValue) -> Linear:
        """A loop variable as a form: itself, or its value while its loop is unrolled."""
        variable = self.variables[iv]
        return self.values.get(variable, lin.variable(variable))

    def is_known(self, form: Linear) -> bool:
        """Whether all variables of a form are bound here, the lane included."""
        return all(v == self.lane or v in self.scopes.bound for v in form.variables())

    def has_lanes(self, form: Linear) -> bool:
        """Whether a form differs from lane to lane."""
        return self.lane is not None and self.lane in form.variables()

    def conditions(self, guard: AffineSet, dims: Sequence[Linear]) -> list[Condition]:
        """The constraints of a set over some forms; those of a GPU's lanes without what cannot decide them, since it
        has no masks. A CPU's loops are cut where a guard fails, lanes and all."""
        found = conditions(guard, dims, self.scopes.ranges)
        return found if self.threads is None else [c.tightened(self.scopes.ranges) for c in found]

    def is_implied(self, condition: Condition) -> bool:
        """Whether a fact about the surrounding iterations implies a condition: f >= 0 where f - fact is never less."""
        return not condition.equal and any(
            Condition(condition.form - fact.form).always(self.scopes.ranges) for facts in self.facts for fact in facts
        )

    def at_lane(self, form: Linear, value: int) -> Linear:
        """The form in one lane."""
        assert self.lane is not None
        return lin.substitute(form, {self.lane: lin.constant(value)}, self.scopes.ranges)

    def truth(self, condition: Condition) -> SSAValue:
        """The truth of a condition without lanes."""
        scopes = self.scopes
        return scopes.is_zero(condition.form) if condition.equal else scopes.at_least_zero(condition.form)

    def all_of(self, conditions: Sequence[Condition]) -> SSAValue:
        """The conjunction of conditions without lanes; there is at least one."""
        truths = [self.truth(condition) for condition in conditions]
        result = truths[0]
        for other in truths[1:]:
            result = self.scopes.add(AndIOp(result, other))
        return result
