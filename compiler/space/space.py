"""`SketchSpace`: the candidates of all sketches of a program, their features and their scripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from compiler.analysis import statements
from compiler.analysis.cost import flops, instances
from compiler.graph.provenance import Provenance
from compiler.passes.split_constants import without_preparation
from compiler.program.tree import Program
from compiler.space.candidates import LATER, Candidate, Features
from compiler.space.extractor import extractor_for
from compiler.space.includes import with_includes
from compiler.space.sketch import Sketch
from compiler.space.structures import Runs, Structure
from compiler.space.trace import TraceGraph
from compiler.support.errors import ScheduleError
from compiler.types.machines import Gpu, Machine

CHUNK = 16384
"""The number of candidates that are evaluated at a time: their columns stay in the cache."""

FEW = 4
"""The maximum number of candidates in a request whose features are never deferred."""
FREE, PER = 8, 800
"""A larger request traces another structure only while there are fewer than FREE, and one for each PER candidates
requested so far: tracing one takes some tens of milliseconds. The features of the other candidates are deferred."""


@dataclass
class _Traced:
    """A sketch with the structures traced so far: in order, and as a decision tree (`runs`)."""

    sketch: Sketch
    graph: TraceGraph = field(default_factory=TraceGraph)
    structures: list[Structure] = field(default_factory=list)
    runs: Runs = field(default_factory=Runs)


@dataclass(frozen=True)
class _Chunk:
    """Candidates of a sketch, n of them. positions: their decisions; columns: the integers chosen; values, reasons:
    results, to be filled; evaluated: a cache of arrays by node."""

    positions: NDArray[np.int64]
    columns: NDArray[np.int64]
    values: NDArray[np.float32]
    reasons: NDArray[np.int16]
    evaluated: dict[int, NDArray[np.float64]] = field(default_factory=dict)


class SketchSpace:
    """The search space of a program on a machine: sketches, and the features of candidates before they are built.

    `defaults` are the decisions with which the sketches were recorded: of the preferred sketch, then the program as it
    is written, the baseline of the others. `estimated`: candidates are not measured but ranked by an estimate, one of
    their features. `names`: maps canonical names to the user's; None without a canonical form. `threads`: of the
    program, for recipes in scripts with includes.
    """

    def __init__(
        self,
        sketches: Sequence[Sketch],
        machine: Machine | Gpu,
        estimated: bool = False,
        names: Provenance | None = None,
        threads: int = 1,
    ) -> None:
        self.sketches, self.names, self.threads = tuple(sketches), names, threads
        self.machine = machine
        self.estimated = estimated
        self._extractor = extractor_for(machine)
        self._traced = [_Traced(sketch) for sketch in sketches]
        self._asked = 0
        self._useful = work(sketches[0].program) if sketches else 1.0

    @cached_property
    def sizes(self) -> tuple[tuple[int, ...], ...]:
        """For each sketch the number of options of each choice."""
        return tuple(sketch.sizes for sketch in self.sketches)

    @cached_property
    def defaults(self) -> tuple[Candidate, ...]:
        """The recorded candidate of each sketch: of the preferred one, of the program as written, of the others."""
        recorded = tuple((number, sketch.recorded_positions) for number, sketch in enumerate(self.sketches))
        return recorded[:1] + recorded[1:][-1:] + recorded[1:-1]

    def costs(self, values: NDArray[np.float32]) -> NDArray[np.float64] | None:
        """The estimated seconds (n,) of candidates by the values (n, features) of their features; None unless
        `estimated`, or if the machine has no estimate."""
        if not self.estimated or self._extractor.seconds is None:
            return None
        return self._extractor.seconds(self.sketches[0].program, self._useful, values)

    @property
    def structures(self) -> int:
        """The number of structures traced so far."""
        return sum(len(traced.structures) for traced in self._traced)

    def script(self, candidate: Candidate) -> str:
        """The text of a candidate's script, all decisions made."""
        number, positions = candidate
        return self.sketches[number].text(positions)

    def short(self, candidate: Candidate) -> ModuleOp:
        """A candidate's script with `sched.include` for the steps of recipes, all decisions made."""
        number, positions = candidate
        sketch = self.sketches[number]
        return with_includes(sketch.decided(positions), sketch.inclusions, self.machine, self.threads)

    def script_with_includes(self, candidate: Candidate) -> str:
        """The text of `short(candidate)`; records store scripts in this form."""
        return str(self.short(candidate))

    def features(self, sketch: int, positions: NDArray[np.int64]) -> Features:
        """The features of candidates of one sketch, whose positions are (n, choices), in this order. Of more than FEW
        some may be deferred (reason LATER), by the limits FREE and PER."""
        traced = self._traced[sketch]
        self._asked += len(positions)
        values = np.zeros((len(positions), self._extractor.width), np.float32)
        reasons = np.zeros(len(positions), np.int16)
        columns = traced.sketch.columns(positions)
        for start in range(0, len(positions), CHUNK):
            rows = slice(start, start + CHUNK)
            self._fill(traced, _Chunk(positions[rows], columns[rows], values[rows], reasons[rows]))
        return Features(values, reasons, self._extractor.reasons)

    def _fill(self, traced: _Traced, chunk: _Chunk) -> None:
        rows, traced_last = np.arange(len(chunk.positions)), -1
        while len(rows):
            unseen = []
            for structure, mine in traced.runs.sorted(traced.graph, chunk.columns, chunk.evaluated, rows):
                if structure is None:
                    unseen.append(mine)
                else:
                    self._write(traced.graph, structure, mine, chunk)
            rows = np.sort(np.concatenate(unseen)) if unseen else rows[:0]
            if not len(rows):
                return
            if rows[0] == traced_last:  # not even its own run matches: the traced code cached another one
                chunk.reasons[rows[:1]] = self._extractor.reasons.index("script")
                rows = rows[1:]
                continue
            traced_last = int(rows[0])
            if len(chunk.positions) > FEW and not self._may_trace(traced):
                chunk.reasons[rows] = self._extractor.reasons.index(LATER)
                return
            structure = self._structure(traced, tuple(int(p) for p in chunk.positions[rows[0]]))
            traced.structures.append(structure)
            traced.runs.add(structure)

    def _may_trace(self, traced: _Traced) -> bool:
        """Whether the limits of tracing allow one more structure."""
        return not traced.structures or self.structures < FREE + self._asked // PER

    def _structure(self, traced: _Traced, positions: tuple[int, ...]) -> Structure:
        """Trace the program of one candidate; the structure has no nodes if a step is refused. Caches of analyses are
        cleared before and after: they may contain traced numbers of another witness, whose guards would not be recorded
        again."""
        graph = traced.graph
        graph.begin()
        statements.forget()
        nodes: tuple[int, ...] | None = None
        try:
            program = traced.sketch.traced_program(graph, positions)
            extracted = self._extractor.extract(without_preparation(program), self._useful)
            nodes = tuple(graph.number_of(value) for value in (*extracted.features, *extracted.infeasible))
        except ScheduleError:
            pass
        finally:
            statements.forget()
        return Structure(tuple(graph.guards), nodes)

    def _write(self, graph: TraceGraph, structure: Structure, rows: NDArray[np.int64], chunk: _Chunk) -> None:
        if structure.nodes is None:
            chunk.reasons[rows] = self._extractor.reasons.index("script")
            return
        width = self._extractor.width
        arrays = graph.evaluate(structure.nodes, chunk.columns, chunk.evaluated)
        values = [array[rows] if array.ndim else array for array in arrays]
        block = np.empty((len(rows), width), np.float32)
        for column, array in enumerate(values[:width]):
            block[:, column] = array
        chunk.values[rows] = block
        row_reasons = np.zeros(len(rows), np.int16)
        for number, array in reversed(list(enumerate(values[width:], 1))):
            row_reasons[np.broadcast_to(array, row_reasons.shape) != 0] = number
        chunk.reasons[rows] = row_reasons


def work(program: Program) -> float:
    """Return the operations of a program without padding and recomputation, at least 1."""
    counts = (
        max(flops(block), int(bool(block.combiners))) * instances(program, block) for block in program.blocks.values()
    )
    return float(max(1, sum(counts)))
