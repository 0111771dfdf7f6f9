"""An explanation as text: a title, three tables, and one machine loop in detail."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Table

from compiler.explain.code import LoopCode, group_copies
from compiler.explain.explanation import Explanation
from compiler.explain.nests import LoopNest
from compiler.explain.profile import LoopTime, Profile
from compiler.explain.temporaries import Temporaries
from compiler.support.text import counted, duration
from compiler.targets.cpu.instructions import InstructionCounts
from compiler.types.machines import host

COUNTS = ("instr", "FLOP", "fma", "loads", "stores", "stack", "shuffles", "ld/fma", "st/fma", "cycles", "% peak")
"""The columns of counts in the table of machine loops."""
MIN_REPORTED = 64
"""The minimum number of instructions outside of machine loops for a source loop to be listed."""


def title(e: Explanation) -> str:
    """Return two lines: the function with its arguments; the machine, and the threads if several."""
    machine = host()
    arguments = ", ".join(map(str, e.kernel.arguments))
    team = e.kernel.threads or 1
    threads = f"; for {team} threads, and timed on one of them" if team > 1 else ""
    return f"@{e.kernel.name}({arguments})\n{machine.cpu}, vectors of {machine.vector_bits} bits{threads}"


def sections(e: Explanation) -> Iterator[tuple[str, Table]]:
    """Yield a heading and a table for machine loops, for times if the program was run, and for temporaries."""
    yield "Innermost loops of the machine code, one iteration each (cycles: all data in L1)", code_table(e)
    if e.profile is not None:
        yield f"Time by loop: {_duration(e.profile)}", time_table(e, e.profile)
    yield f"Temporaries: an arena of {_size(e.temporaries.arena)}", memory_table(e.temporaries)


def outside(e: Explanation) -> str:
    """Return a line with the number of instructions outside of innermost machine loops, in all and for each source loop
    with at least MIN_REPORTED."""
    total = sum(part.instructions for part in e.outside)
    most = [part for part in e.outside if part.nest is not None and part.instructions >= MIN_REPORTED]
    parts = [f"{part.instructions} of {_of(part.nest)}" for part in most if part.nest is not None]
    return f"outside of them: {counted(total, 'instruction')}" + (f", {', '.join(parts)}" if parts else "")


def code_table(e: Explanation) -> Table:
    """Return the table of machine loops, with one row for adjacent copies."""
    has_sources = any(code.path and code.path[-1].sources for code in e.codes)
    columns = ("limit; also", "source") if has_sources else ("limit; also",)
    table = _table("#", "loop", "vector", *COUNTS, *columns, left=3)
    for group in group_copies(e.codes):
        sources = [", ".join(group[0].path[-1].sources) if group[0].path else ""] if has_sources else []
        table.add_row(_numbers(group), loop_label(group[0]), group[0].census.width, *_figures(group[0]), *sources)
    return table


def _figures(code: LoopCode) -> Iterator[str]:
    c = code.census
    for number in (c.instructions, c.flops, c.fma, c.loads, c.stores, c.stack_loads + c.stack_stores, c.shuffles):
        yield str(number or "-")
    for ratio in (c.loads_per_fma, c.stores_per_fma):
        yield "-" if ratio is None else f"{ratio:.2f}"
    yield f"{code.estimate.cycles:.1f}"
    yield "-" if code.percent is None else f"{code.percent:.0f}"
    yield "; ".join([code.estimate.limit, *_rare_instructions(c)])


def _rare_instructions(c: InstructionCounts) -> Iterator[str]:
    """Yield texts for rare instructions that a loop has: `2 gathers`, `1 call of expf`."""
    rare = (("broadcast", c.broadcasts), ("gather", c.gathers), ("scatter", c.scatters), ("division", c.divisions))
    yield from (counted(number, kind) for kind, number in rare if number)
    if c.branches:
        yield counted(c.branches, "inner branch", "es")
    for name in dict.fromkeys(c.calls):
        yield f"{counted(c.calls.count(name), 'call')} of {name}"


def _numbers(group: Sequence[LoopCode]) -> str:
    first, last = group[0].number, group[-1].number
    return str(first) if first == last else f"{first}-{last}"


def loop_label(code: LoopCode) -> str:
    """Describe a machine loop by its source loop and the loops unrolled in it: `C: k.0 with k.1 unrolled`, with the
    name of the block first; `? LABEL` for an unknown source loop."""
    if not code.path:
        return f"? {code.label}"
    inside = " ".join(dict.fromkeys(nest.name for nest in code.unrolled))
    return _of(code.path[-1]) + (f" with {inside} unrolled" if inside else "")


def _of(nest: LoopNest) -> str:
    return f"{', '.join(nest.blocks)}: {nest.name}"


def details(code: LoopCode) -> Iterator[str]:
    """Yield lines with the counts, the cycles and the limit of one machine loop."""
    c, e = code.census, code.estimate
    path = " / ".join(nest.name for nest in code.path) or "not known"
    yield f"loop {code.number}: {code.label} of {code.function}, in {counted(code.depth - 1, 'other')}"
    yield f"  repeats {path} ({loop_label(code)})"
    if code.path and code.path[-1].sources:
        yield f"  computes {', '.join(code.path[-1].sources)}"
    work = f", {c.flops} FLOP in {c.width}" if c.flops else f", {c.width}" if c.width else ""
    counts = (
        counted(c.loads, "load"),
        counted(c.stores, "store"),
        counted(c.shuffles, "shuffle"),
        *_rare_instructions(c),
    )
    yield f"  {counted(c.instructions, 'instruction')}{work}: {', '.join((f'{c.fma} fma', *counts))}"
    if c.fma:
        yield f"  {c.loads_per_fma:.2f} loads and {c.stores_per_fma:.2f} stores for each fma"
    if c.stack_loads or c.stack_stores:
        yield f"  on the stack, of these: {counted(c.stack_loads, 'load')}, {counted(c.stack_stores, 'store')}"
    peak = "" if code.percent is None else f", {code.percent:.0f}% of the FMA peak"
    yield f"  {e.cycles:.1f} cycles{peak}, limited by {e.limit}"
    needs = sorted(e.pressure.items(), key=lambda need: -need[1])
    yield "  cycles needed: " + ", ".join(f"{name} {cycles:.1f}" for name, cycles in needs if cycles >= 0.05)


def time_table(e: Explanation, profile: Profile) -> Table:
    """Return the table of source loops with their times; cells of loops that were not measured are empty."""
    table = _table("loop", "blocks", "runs", "time", "%", "GFLOP/s", "% peak", "GB/s", "machine loops", left=2)
    total = sum(profile.loops[nest.number].seconds for nest in e.nests)
    machine = _machine_loops(e.codes)

    def add(nests: Sequence[LoopNest], indent: str) -> None:
        for nest in nests:
            spent, numbers = profile.loops.get(nest.number), machine.get(nest.number, "")
            figures = _times(nest, spent, total, profile.peak) if spent is not None else [""] * 6
            table.add_row(f"{indent}{_trips(nest)}", ", ".join(nest.blocks), *figures, numbers)
            add(nest.inner, f"{indent}  ")

    add(e.nests, "")
    return table


def _trips(nest: LoopNest) -> str:
    return nest.name if nest.trips is None else f"{nest.name} {'=' if nest.exact else '<='} {nest.trips}"


def _times(nest: LoopNest, spent: LoopTime, total: float, peak: float | None) -> Iterator[str]:
    seconds = spent.seconds
    yield str(spent.runs)
    yield duration(seconds)
    yield f"{100 * seconds / total:.1f}" if total else "-"
    yield f"{nest.flops / seconds / 1e9:.1f}" if nest.flops and seconds else "-"
    yield f"{100 * nest.flops / seconds / peak:.0f}" if nest.flops and seconds and peak else "-"
    yield f"{nest.bytes * spent.runs / seconds / 1e9:.1f}" if nest.bytes and seconds else "-"


def _machine_loops(codes: Sequence[LoopCode]) -> dict[int, str]:
    by_nest: dict[int, list[str]] = {}
    for group in group_copies(codes):
        if group[0].path:
            by_nest.setdefault(group[0].path[-1].number, []).append(f"#{_numbers(group)}")
    return {number: ", ".join(names) for number, names in by_nest.items()}


def memory_table(t: Temporaries) -> Table:
    """Return the table of buffers between blocks, with their offset in the arena, or on the stack."""
    table = _table("buffer", "elements", "bytes", "at", left=2)
    for buffer in t.buffers:
        table.add_row(
            buffer.name, buffer.type, str(buffer.bytes), "stack" if buffer.offset is None else f"+{buffer.offset}"
        )
    return table


def _table(*headings: str, left: int) -> Table:
    """Create a table without lines; the first `left` columns and the last one are text, aligned to the left."""
    table = Table(box=None, pad_edge=False)
    for number, heading in enumerate(headings):
        text = number < left or number == len(headings) - 1 or heading == "limit; also"
        table.add_column(heading, justify="left" if text else "right", no_wrap=True)
    return table


def _duration(profile: Profile) -> str:
    extra = 100 * (profile.profiled / profile.plain - 1)
    plain, profiled = duration(profile.plain), duration(profile.profiled)
    peak = "" if profile.peak is None else f"; the f32 peak beside it is {profile.peak / 1e9:.0f} GFLOP/s"
    return f"a call takes {plain}, {profiled} while it is measured ({extra:+.0f}%){peak}"


def _size(count: int) -> str:
    for unit, size in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count} bytes"
