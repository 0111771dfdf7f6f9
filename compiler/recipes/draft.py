"""`Draft`: a schedule while rules write it; `Alternative`: one way a rule would go on; `Rule`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, cast

from compiler.affine.linear import Linear, constant, substitute
from compiler.dialects.access import AxisAttr
from compiler.program.tree import Access, Block, Program
from compiler.recipes.steps import contiguous
from compiler.schedule import Handle, Schedule, Size
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu, Machine

EVEN = 0.85
"""The part of the threads' time from which on fewer and longer parallel loops are worth more than even shares."""


@dataclass(frozen=True)
class Draft:
    """A schedule that rules are writing.

    `left` are the blocks of the original program that no rule has dealt with, in its order. `panels` are temporaries
    that lie in panels of rows, with the rows of a panel, which their consumers read as packed. `kept` are handles that
    somebody else needs after the rules are done.
    """

    schedule: Schedule
    target: Machine | Gpu
    threads: int
    left: tuple[str, ...]
    panels: dict[str, Size] = field(default_factory=dict)
    kept: tuple[Handle, ...] = ()

    @property
    def machine(self) -> Machine:
        """What a CPU's rules write for."""
        return cast("Machine", self.target)

    @property
    def gpu(self) -> Gpu:
        """What a GPU's rules write for."""
        return cast("Gpu", self.target)

    def fork(self) -> Draft:
        """The same draft, to be continued on its own."""
        return self.copied()[0]

    def copied(self) -> tuple[Draft, dict[Handle, Handle]]:
        """The same draft, to be continued on its own, and its handles by those of this one."""
        schedule, handles = self.schedule.fork()
        panels = {name: handles[size] if isinstance(size, Handle) else size for name, size in self.panels.items()}
        kept = tuple(handles[handle] for handle in self.kept)
        return replace(self, schedule=schedule, panels=panels, kept=kept), handles

    def without(self, done: Sequence[str]) -> Draft:
        """The draft after some blocks have been dealt with."""
        return replace(self, left=tuple(label for label in self.left if label not in done))

    def block(self, label: str) -> Block:
        """A block of the program as it stands."""
        return self.schedule.program.blocks[label]

    def handle(self, block: Block | None) -> Handle | None:
        """The handle of a block, if there is one."""
        return None if block is None else self.schedule.get_block(block.label)

    def lanes(self, label: str) -> int:
        """The lanes of a vector of a block's result."""
        block = self.block(label)
        element = self.schedule.program.buffers[block.writes[0].buffer].element
        return max(1, self.target.vector_bits // (8 * element_bytes(element)))

    def masks(self, label: str) -> bool:
        """Whether the processor masks vectors of a block's result: before AVX-512 no bytes or half words."""
        element = self.schedule.program.buffers[self.block(label).writes[0].buffer].element
        return element_bytes(element) >= 4 or self.target.vector_bits >= 512

    def is_temporary(self, label: str) -> bool:
        """Whether what a block writes is no result of the program."""
        return all(access.buffer in self.schedule.program.allocs for access in self.block(label).writes)

    def readers(self, label: str) -> list[Block]:
        """The blocks that read what a block writes."""
        program = self.schedule.program
        names = dict.fromkeys(access.buffer for access in self.block(label).writes)
        by_label = {b.label: b for name in names for b in program.readers[name] if b.label != label}
        return list(by_label.values())

    def consumer(self, label: str) -> Block | None:
        """The one elementwise block that reads what a block writes, at its own indices, and is left; axes and
        dimensions of one element may differ."""
        readers, block = self.readers(label), self.block(label)
        if len(readers) != 1 or readers[0].combiners or readers[0].label not in self.left:
            return None
        written, place = block.writes[0].buffer, self._place(readers[0], readers[0].writes[0])
        same = all(self._place(readers[0], access) == place for access in readers[0].reads if access.buffer == written)
        return readers[0] if same and _long(readers[0].axes) == _long(block.axes[: block.spatial]) else None

    def producer(self, buffer: str) -> Block | None:
        """The one elementwise block that computes a buffer, for one block alone, and is left."""
        writers = self.schedule.program.writers.get(buffer, ())
        if len(writers) != 1 or writers[0].label not in self.left or writers[0].combiners or writers[0].table:
            return None
        return writers[0] if len(self.readers(writers[0].label)) == 1 else None

    def _place(self, block: Block, access: Access) -> list[Linear]:
        """The index of an access in the dimensions of several elements, without the axes of one."""
        still = {n: constant(0) for n, axis in enumerate(block.axes) if axis.size == 1}
        dims = zip(access.index, self.schedule.program.buffers[access.buffer].shape, strict=True)
        return [substitute(form, still, block.axis_ranges) for form, size in dims if size > 1]

    def choose(self, options: Sequence[int], wanted: int, name: str | None = None) -> Size:
        """An open choice among some sizes, recorded with the size nearest to the wanted one; a single size is no
        choice. `name` is its name in the script."""
        kept = sorted(set(options))
        if len(kept) == 1:
            return kept[0]
        nearest = min(range(len(kept)), key=lambda n: (abs(kept[n] - wanted), n))
        return self.schedule.sample_categorical(kept, decision=nearest, name=name)

    def parallel(self, loop: Handle, inner: Handle | None = None) -> None:
        """Run a loop on the threads, if there are several; the inner one where that has too few iterations for all, or
        a remainder that leaves threads idle."""
        if inner is not None and self._busy(loop) < min(EVEN, self._busy(inner)):
            loop = inner
        if self.threads > 1:
            self.schedule.parallel(loop)

    def _busy(self, loop: Handle) -> float:
        """The part of the threads' time that is busy where they take equal shares of a loop."""
        extent = self.schedule.extent(loop)
        return extent / (-(-extent // self.threads) * self.threads)


def to_schedule(program: Program) -> tuple[str, ...]:
    """The blocks of a program that each call runs, in its order. Blocks that depend on constants alone run once where
    they stand, and must not be computed inside others."""
    constants, labels = {*program.constants, *(literal.buffer.name for literal in program.literals)}, list[str]()
    for label, block in program.blocks.items():
        read = {access.buffer for access in block.reads} | ({block.table.buffer} if block.table else set())
        made = {access.buffer for access in block.writes}
        if read and read <= constants and made <= program.allocs.keys():
            constants |= made
        else:
            labels.append(label)
    return tuple(labels)


def _long(axes: Sequence[AxisAttr]) -> int:
    """How many axes are of several elements."""
    return sum(axis.size > 1 for axis in axes)


@dataclass(frozen=True)
class Alternative:
    """One way to go on: its name, and what it does to a draft, giving the blocks that it has dealt with.

    It may raise ScheduleError, upon which the draft is dropped. Where it is not `optional`, a derivation that passes
    the rule over is not worth following.
    """

    name: str
    apply: Callable[[Draft], Sequence[str]]
    optional: bool = True


def alternative_fault(alternative: object) -> str:
    """Describe why a value that a rule yields is no alternative; empty for one."""
    if not isinstance(alternative, Alternative):
        return f"it yielded {alternative!r}; it yields alternatives, such as Alternative(name, apply)"
    fits = isinstance(alternative.name, str) and callable(alternative.apply)
    return "" if fits else f"it yielded {alternative!r}; an alternative has a name, then a function"


def labels_fault(scheduled_labels: object) -> str:
    """Describe why a value is no result of an alternative's `apply`; empty for labels of blocks."""
    listed = scheduled_labels if isinstance(scheduled_labels, Sequence) else [None]
    if not isinstance(listed, str) and all(isinstance(label, str) for label in listed):
        return ""
    expected = "the labels of the blocks that it scheduled, such as [label]"
    return f"apply gave {scheduled_labels!r}; it gives {expected}"


def labels(*blocks: Block | None) -> list[str]:
    """The labels of those blocks that there are."""
    return [block.label for block in blocks if block is not None]


def inlined(draft: Draft, label: str) -> Sequence[str]:
    """Inline a block into its readers; many rules offer this."""
    draft.schedule.inline(draft.schedule.get_block(label))
    return [label]


def in_order(draft: Draft, label: str) -> Sequence[str]:
    """Put the loops of a block in the order in which its elements lie, and leave it so."""
    contiguous(draft.schedule, draft.schedule.get_block(label))
    return [label]


Rule: TypeAlias = Callable[[Draft, str], Iterator[Alternative]]
"""The ways to deal with a block of a draft, the most promising first; none where the rule is not for such a block."""
