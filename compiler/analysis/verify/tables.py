"""Proof that every element of a table that a gather may choose is finished when it is read.

The chosen element is data, so each instance counts as a set of readers of all elements along the data-dependent
dimensions, like the readers of the results after the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from compiler.affine import linear as lin
from compiler.affine.linear import Linear
from compiler.analysis.sets import union_map
from compiler.analysis.statements import Key
from compiler.analysis.verify.content import Content, Unknown
from compiler.analysis.verify.flow import Flow
from compiler.program.tree import Program, Table


def data_sizes(program: Program, table: Table) -> list[int | None]:
    """Return the size of each dimension of a table that a loaded value indexes; None for dimensions with an affine
    index."""
    shape = program.buffers[table.buffer].shape
    return [size if isinstance(form, int) else None for form, size in zip(table.index, shape, strict=True)]


@dataclass(frozen=True)
class _Readers:
    """The tuples G[loops, e]: a reader for each instance of a gather and each element that it may read. `sizes`: the
    extents of the table's dimensions with loaded index, by dimension."""

    flow: Flow
    key: Key
    sizes: dict[int, int]

    def map(self, space: str, index: Sequence[Linear | int], around: Sequence[Linear] = ()) -> isl.UnionMap:
        """The map from readers to the tuple space[around, index]; a loaded index is the element e<d> of the reader."""
        forms = [lin.to_isl(f, self.flow.names) for f in around]
        forms += [f"e{d}" if isinstance(f, int) else lin.to_isl(f, self.flow.names) for d, f in enumerate(index)]
        return self._map(f"{space}[{', '.join(forms)}]")

    def instances(self) -> isl.UnionMap:
        """The map from the readers to their instances."""
        return self._map(self.flow.space(self.key))

    def _map(self, tuple_: str) -> isl.UnionMap:
        # G gathers T[I[l0]] for l0 in [0, 3), T of 8 elements: { G[l0, e0] -> M[e0] : 0 <= l0 < 3 and 0 <= e0 < 8 }.
        names = [f"l{n}" for n in self.flow.statements[self.key].loops] + [f"e{d}" for d in self.sizes]
        bounds = [f"0 <= e{d} < {size}" for d, size in self.sizes.items()]
        text = " and ".join([self.flow.domain_text(self.key), *bounds])
        return union_map(f"G[{', '.join(names)}] -> {tuple_} : {text}")

    def content(self, table: Table) -> Content:
        """The content that the readers find in the table."""
        flow, buffer = self.flow, table.buffer
        if not flow.writers(buffer):
            is_argument = buffer not in flow.program.allocs
            return Content(final={buffer: self.map(flow.value_space(buffer), table.index)} if is_argument else {})
        cells = self.map(flow.cell_space(buffer), table.index, flow.around(buffer))
        return flow.of_cells(buffer, cells, self._before)

    def _before(self, key: Key) -> isl.UnionMap:
        return self.instances().apply_range(self.flow.before(self.key, key))


def check_elements(
    flow: Flow, key: Key, table: Table, origin: Table, at: Sequence[Linear], domain: isl.UnionSet
) -> None:
    """Raise Refuted or Unknown unless the elements that a gather may read on a domain are the elements its origin
    reads. `at` are the forms of the origin's axes."""
    # G[i] = T[index[i]], T[8]: the readers { G[i, e] : 0 <= e < 8 } must find { G[i, e] -> T[e] }.
    sizes = {d: size for d, size in enumerate(data_sizes(flow.program, table)) if size is not None}
    block, ranges, readers = flow.statements[key].block, flow.program.ranges, _Readers(flow, key, sizes)
    values = dict(enumerate(at))
    index = [f if isinstance(f, int) else lin.substitute(f, values, ranges) for f in origin.index]
    instances = readers.instances().intersect_range(domain)
    expected = readers.map(flow.value_space(origin.buffer), index).intersect_domain(instances.domain())
    forms = tuple(f if isinstance(f, int) else block.at(f, ranges) for f in table.index)
    lack = readers.content(Table(table.buffer, forms, table.otherwise)).lack(origin.buffer, expected)
    if lack is None:
        return
    if lack.kind == "unknown":
        raise Unknown(f"what block '{block.label}' finds in '{table.buffer}' could not be followed")
    reason = f"may read '{table.buffer}' where it does not hold the value of '{origin.buffer}'"
    if lack.kind == "partial":
        reason = f"may read '{table.buffer}' while contributions to '{origin.buffer}' are missing"
    flow.refute(key, lack.instances.apply(instances), reason)
