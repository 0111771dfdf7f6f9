"""`Draft`: a schedule under construction by rules; `Alternative`: one way to continue it; `Rule`."""

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
"""The least utilisation of the threads by an outer loop for which no inner loop is made parallel instead."""


@dataclass(frozen=True)
class Draft:
    """A schedule under construction by rules, for `threads` threads of the machine `target`.

    left: the labels of the program's blocks that no rule has scheduled, in program order. panels: map each temporary
    stored in panels of rows to the rows of a panel; consumers read it as packed. kept: the handles of the template's
    values, in their order; copies of the draft have their own.

    >>> A = te.placeholder((64,), name="A")
    >>> s = Schedule(te.function("f", [A], te.nn.exp(A, name="B")))
    >>> draft = strata.recipes.Draft(s, strata.targets.MACHINES["avx2"], threads=1, left=("B",))
    >>> draft.lanes("B"), draft.is_temporary("B"), s.value(draft.choose([2, 4, 8], wanted=5, name="vectors"))
    (8, False, 4)
    """

    schedule: Schedule
    target: Machine | Gpu
    threads: int
    left: tuple[str, ...]
    panels: dict[str, Size] = field(default_factory=dict)
    kept: tuple[Handle, ...] = ()

    @property
    def machine(self) -> Machine:
        """The target as a CPU; valid only for drafts of CPUs."""
        return cast("Machine", self.target)

    @property
    def gpu(self) -> Gpu:
        """The target as a GPU; valid only for drafts of GPUs."""
        return cast("Gpu", self.target)

    def fork(self) -> Draft:
        """Return an independent copy of the draft, with handles of its own."""
        return self.copied()[0]

    def copied(self) -> tuple[Draft, dict[Handle, Handle]]:
        """Return an independent copy of the draft, and a map from the handles of this draft to those of the copy."""
        schedule, handles = self.schedule.fork()
        panels = {name: handles[size] if isinstance(size, Handle) else size for name, size in self.panels.items()}
        kept = tuple(handles[handle] for handle in self.kept)
        return replace(self, schedule=schedule, panels=panels, kept=kept), handles

    def without(self, done: Sequence[str]) -> Draft:
        """Return the draft with the blocks in `done` removed from `left`."""
        return replace(self, left=tuple(label for label in self.left if label not in done))

    def block(self, label: str) -> Block:
        """Return a block of the program as the steps so far leave it. Raises KeyError if no block has the label."""
        return self.schedule.program.blocks[label]

    def handle(self, block: Block | None) -> Handle | None:
        """Return the handle of a block; None if `block` is None. Raises ScheduleError for a block that is no longer in
        the program."""
        return None if block is None else self.schedule.get_block(block.label)

    def lanes(self, label: str) -> int:
        """Return the number of elements of a block's first result that a vector holds; at least 1."""
        block = self.block(label)
        element = self.schedule.program.buffers[block.writes[0].buffer].element
        return max(1, self.target.vector_bits // (8 * element_bytes(element)))

    def masks(self, label: str) -> bool:
        """Return whether the processor has masked vectors of the element type of a block's first result: always for 4
        bytes or more, for bytes and half words only with vectors of 512 bits."""
        element = self.schedule.program.buffers[self.block(label).writes[0].buffer].element
        return element_bytes(element) >= 4 or self.target.vector_bits >= 512

    def is_temporary(self, label: str) -> bool:
        """Return whether a block writes only temporaries, and no result of the program."""
        return all(access.buffer in self.schedule.program.allocs for access in self.block(label).writes)

    def readers(self, label: str) -> list[Block]:
        """Return the other blocks that read or gather from a result of a block, each once."""
        program = self.schedule.program
        names = dict.fromkeys(access.buffer for access in self.block(label).writes)
        by_label = {b.label: b for name in names for b in program.readers[name] if b.label != label}
        return list(by_label.values())

    def consumer(self, label: str) -> Block | None:
        """Return the only block that reads a result of a block, if it is elementwise, in `left`, has as many axes as
        the block's spatial ones, and reads the block's first result at the index that it writes, perhaps only some of
        its elements; its reads of other results and gathers from other buffers are not looked at. Axes and dimensions
        of extent 1 are ignored. None for any other reader, one that gathers from the result, several and none."""
        readers, block = self.readers(label), self.block(label)
        if len(readers) != 1 or readers[0].combiners or readers[0].label not in self.left:
            return None
        written, index = block.writes[0].buffer, self._index(readers[0], readers[0].writes[0])
        indices = [self._index(readers[0], access) for access in readers[0].reads if access.buffer == written]
        same = bool(indices) and all(each == index for each in indices)
        return readers[0] if same and _long(readers[0].axes) == _long(block.axes[: block.spatial]) else None

    def producer(self, buffer: str) -> Block | None:
        """Return the only block that writes a buffer if it is elementwise, in `left`, without a gather, and has one
        reader; else None."""
        writers = self.schedule.program.writers.get(buffer, ())
        if len(writers) != 1 or writers[0].label not in self.left or writers[0].combiners or writers[0].table:
            return None
        return writers[0] if len(self.readers(writers[0].label)) == 1 else None

    def _index(self, block: Block, access: Access) -> list[Linear]:
        """Return the index of an access, without dimensions of extent 1, and with 0 in place of axes of extent 1."""
        still = {n: constant(0) for n, axis in enumerate(block.axes) if axis.size == 1}
        dims = zip(access.index, self.schedule.program.buffers[access.buffer].shape, strict=True)
        return [substitute(form, still, block.axis_ranges) for form, size in dims if size > 1]

    def choose(self, options: Sequence[int], wanted: int, name: str | None = None) -> Size:
        """Add a choice among the sizes `options`, called `name`, to the script and return its handle; the default is
        the size nearest to `wanted`, the smaller of two equally near. A single size is returned as a constant, and no
        choice is added. Requires at least one size. name: None for an unnamed choice."""
        sizes = sorted(set(options))
        if len(sizes) == 1:
            return sizes[0]
        nearest = min(range(len(sizes)), key=lambda n: (abs(sizes[n] - wanted), n))
        return self.schedule.sample_categorical(sizes, decision=nearest, name=name)

    def parallel(self, loop: Handle, inner: Handle | None = None) -> None:
        """Make a loop parallel, if there are several threads, else do nothing; `inner` instead, if it is not None, if
        the outer loop's utilisation of the threads is below EVEN and the inner loop's is higher."""
        if inner is not None and self._busy(loop) < min(EVEN, self._busy(inner)):
            loop = inner
        if self.threads > 1:
            self.schedule.parallel(loop)

    def _busy(self, loop: Handle) -> float:
        """Return the utilisation of the threads by a loop, from 0 to 1: 5 iterations on 4 threads take 2 rounds, so
        that 5/8 of the threads' time is busy."""
        extent = self.schedule.extent(loop)
        return extent / (-(-extent // self.threads) * self.threads)


def to_schedule(program: Program) -> tuple[str, ...]:
    """Return the labels of the blocks to schedule, in program order: without those that write only temporaries and
    depend on constants alone, directly or not, which run once, before the first call, and must not be computed inside
    others."""
    constants, labels = {*program.constants, *(literal.buffer.name for literal in program.literals)}, list[str]()
    for label, block in program.blocks.items():
        read = {access.buffer for access in block.reads} | ({block.table.buffer} if block.table else set())
        written = {access.buffer for access in block.writes}
        if read and read <= constants and written <= program.allocs.keys():
            constants |= written
        else:
            labels.append(label)
    return tuple(labels)


def _long(axes: Sequence[AxisAttr]) -> int:
    """Count the axes of extent above 1."""
    return sum(axis.size > 1 for axis in axes)


@dataclass(frozen=True)
class Alternative:
    """One way to schedule a block of a draft. name: unique among the ways of its rule; scripts state it as `way`.
    apply: a function that schedules the draft in place and returns the labels of the blocks that it scheduled; if it
    raises ScheduleError, the draft is dropped.

    optional: whether the search may also leave the block to later rules; False if an alternative has to be taken.

    >>> strata.recipes.Alternative("as written", lambda draft: ["C"]).optional
    True
    """

    name: str
    apply: Callable[[Draft], Sequence[str]]
    optional: bool = True


def alternative_fault(alternative: object) -> str:
    """Return a sentence on why a value that a rule yields is no alternative; "" if it is one."""
    if not isinstance(alternative, Alternative):
        return f"it yielded {alternative!r}; it yields alternatives, such as Alternative(name, apply)"
    fits = isinstance(alternative.name, str) and callable(alternative.apply)
    return "" if fits else f"it yielded {alternative!r}; an alternative has a name, then a function"


def labels_fault(scheduled_labels: object) -> str:
    """Return a sentence on why a value is no result of an alternative's `apply`; "" for a sequence of labels, which may
    be empty."""
    listed = scheduled_labels if isinstance(scheduled_labels, Sequence) else [None]
    if not isinstance(listed, str) and all(isinstance(label, str) for label in listed):
        return ""
    expected = "the labels of the blocks that it scheduled, such as [label]"
    return f"apply gave {scheduled_labels!r}; it gives {expected}"


def labels(*blocks: Block | None) -> list[str]:
    """Return the labels of the blocks that are not None, in order."""
    return [block.label for block in blocks if block is not None]


def inlined(draft: Draft, label: str) -> Sequence[str]:
    """Inline a block into its readers; return its label in a list, as an `apply`. Raises ScheduleError if refused."""
    draft.schedule.inline(draft.schedule.get_block(label))
    return [label]


def in_order(draft: Draft, label: str) -> Sequence[str]:
    """Order the loops of a block by `contiguous`; return its label in a list, as the `apply` of an alternative."""
    contiguous(draft.schedule, draft.schedule.get_block(label))
    return [label]


Rule: TypeAlias = Callable[[Draft, str], Iterator[Alternative]]
"""A generator of the alternatives for a block, given by its label, the best first; none if the rule does not match."""
