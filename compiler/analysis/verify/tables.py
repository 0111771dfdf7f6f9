"""Whether a gather reads what its origin does: the same index values, and every element of the table that they may
choose is finished at that time.

Which element is chosen is not known, so each instance stands for readers of all elements along the data-dependent
dimensions, like the readers of the results after the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import islpy as isl

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import context
from compiler.analysis.statements import Key
from compiler.analysis.verify.content import Content, Unknown
from compiler.analysis.verify.flow import Flow
from compiler.elements import is_unsigned
from compiler.program import body
from compiler.program.tree import Block, Program, Table

if TYPE_CHECKING:
    from compiler.analysis.verify.values import Comparison, Wanted


def is_gather(wanted: Wanted) -> bool:
    """Whether the value of a table is wanted."""
    node, block = wanted.node, wanted.block
    return block.table is not None and isinstance(node, body.Read) and node.position == len(block.reads)


def check_gather(comparison: Comparison, wanted: Wanted, actual: body.Scalar, domain: Any) -> None:
    """Raise Refuted or Unknown unless a gather of the scheduled program reads what its origin does on a domain."""
    flow, block, source = comparison.flow, comparison.block, wanted.block
    mine, other = block.table, source.table
    assert other is not None
    if mine is None or not isinstance(actual, body.Read) or actual.position != len(block.reads):
        comparison.refute(domain, f"does not gather, as its origin '{source.label}' does")
        return
    if mine.otherwise != other.otherwise:
        comparison.refute(domain, "has another value outside the table than its origin")
    if _layout(flow.program, mine) != _layout(flow.original, other):
        raise Unknown(f"block '{block.label}' reads a table of another layout than its origin '{source.label}'")
    for dim, chosen in enumerate(mine.index):
        number = other.index[dim]
        if isinstance(chosen, int) and isinstance(number, int):
            if _unsigned(flow.program, block, chosen) != _unsigned(flow.original, source, number):
                comparison.refute(domain, "takes index values with another sign than its origin")
            value = body.read(chosen, block.read_types[chosen])
            asked = body.read(number, source.read_types[number])
            comparison.check(type(wanted)(source, asked, wanted.at), value, domain)
    _check_elements(comparison, wanted, mine, other, domain)


def _unsigned(program: Program, block: Block, position: int) -> bool:
    return is_unsigned(program.buffers[block.reads[position].buffer].element)


def _layout(program: Program, table: Table) -> list[int | None]:
    """The sizes of the data-dependent dimensions, None for the others."""
    shape = program.buffers[table.buffer].shape
    return [size if isinstance(form, int) else None for form, size in zip(table.index, shape, strict=True)]


@dataclass(frozen=True)
class _Readers:
    """The readers of all elements that instances of a gather may read."""

    flow: Flow
    key: Key
    sizes: dict[int, int]

    def map(self, target: str, index: Sequence[Linear | int], around: Sequence[Linear] = ()) -> Any:
        """From the readers to a tuple; a data-dependent index is the reader's own."""
        forms = [lin.to_isl(f, self.flow.names) for f in around]
        forms += [f"e{d}" if isinstance(f, int) else lin.to_isl(f, self.flow.names) for d, f in enumerate(index)]
        return self._map(f"{target}[{', '.join(forms)}]")

    def instances(self) -> Any:
        """From the readers to the instances that they belong to."""
        return self._map(self.flow.space(self.key))

    def _map(self, target: str) -> Any:
        names = [f"l{n}" for n in self.flow.statements[self.key].loops] + [f"e{d}" for d in self.sizes]
        bounds = [f"0 <= e{d} < {size}" for d, size in self.sizes.items()]
        text = " and ".join([self.flow.domain_text(self.key), *bounds])
        return isl.UnionMap(f"{{ G[{', '.join(names)}] -> {target} : {text} }}", context())

    def content(self, table: Table) -> Content:
        """What they find in the table."""
        flow, buffer = self.flow, table.buffer
        written = any(u.buffer == buffer and u.how != "read" for s in flow.statements.values() for u in s.uses)
        if not written:
            known = buffer not in flow.program.allocs
            return Content(final={buffer: self.map(flow.value_space(buffer), table.index)} if known else {})
        place = (f"\0{self.key[0]}", False)
        flow.times[place] = self.instances().apply_range(flow.times[self.key])
        around: tuple[Linear, ...] = ()
        if buffer in flow.program.allocs:
            around = tuple(lin.variable(n.number) for n in flow.program.enclosing((buffer,)))
        return flow.of_cells(place, buffer, self.map(f"M{flow.cells[buffer]}", table.index, around), None)


def _check_elements(comparison: Comparison, wanted: Wanted, mine: Table, other: Table, domain: Any) -> None:
    flow = comparison.flow
    sizes = {d: size for d, size in enumerate(_layout(flow.program, mine)) if size is not None}
    readers = _Readers(flow, comparison.key, sizes)
    values = dict(enumerate(wanted.at))
    index = [f if isinstance(f, int) else lin.substitute(f, values, flow.program.ranges) for f in other.index]
    instances = readers.instances().intersect_range(domain)
    expected = readers.map(flow.value_space(other.buffer), index).intersect_domain(instances.domain())
    own = tuple(f if isinstance(f, int) else comparison.block.at(f, flow.program.ranges) for f in mine.index)
    content = readers.content(Table(mine.buffer, own, mine.otherwise))
    found = content.final.get(other.buffer)
    wrong = expected if found is None else expected.subtract(found)
    if wrong.is_empty():
        return
    at = wrong.domain().apply(instances)
    partial = content.partial.get(other.buffer)
    if partial is not None and not partial.domain().intersect(wrong.domain()).is_empty():
        comparison.refute(at, f"may read '{mine.buffer}' while contributions to '{other.buffer}' are missing")
    certain = wrong.domain().subtract(content.unknown)
    if certain.is_empty():
        raise Unknown(f"what block '{comparison.block.label}' finds in '{mine.buffer}' could not be followed")
    comparison.refute(
        certain.apply(instances), f"may read '{mine.buffer}' where it does not hold the value of '{other.buffer}'"
    )
