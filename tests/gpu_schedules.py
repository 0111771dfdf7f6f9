"""Schedules for GPUs that the tests of kernels share."""

from __future__ import annotations

from math import prod

import compiler
from compiler import recipes, te
from compiler.analysis.stages import BLOCKS, THREADS
from compiler.program.tree import Program
from compiler.recipes.rules import GPU_RULES, Rule
from compiler.schedule import Schedule
from compiler.space.derivation import preferred
from compiler.targets.cuda import representative_gpu
from tests.programs import matmul


def product(m: int = 32, n: int = 32, k: int = 16) -> te.Function:
    return matmul(m, n, k)


def tiled(
    function: te.Function, threads: tuple[int, int] = (8, 8), tile: tuple[int, int] = (2, 2), depth: int = 8
) -> Schedule:
    """A product by blocks of threads, each with a register tile; both operands fetched together into shared memory."""
    s = Schedule(compiler.lower(function))
    c = s.get_block("C")
    out = s.cache_write(c, "local")
    m, n, k = s.get_loops(c)
    m0, m1, m2 = s.split(m, [None, threads[0], tile[0]])
    n0, n1, n2 = s.split(n, [None, threads[1], tile[1]])
    k0, k1 = s.split(k, [None, depth])
    s.reorder(m0, n0, k0, m1, n1, k1, m2, n2)
    s.reverse_compute_at(out, n0)
    for buffer in ("A", "B"):
        read = s.cache_read(c, buffer, "shared")
        s.compute_at(read, k0)
        fetched = s.fuse(*s.get_loops(read)[3:])
        _, y, x = s.split(fetched, [None, *threads])
        s.bind(y, "thread_y")
        s.bind(x, "thread_x")
    init = s.decompose_reduction(c, k0)
    for loop in s.get_loops(init)[2:]:
        name = s.label(loop)
        if name in ("m.1", "n.1"):
            s.bind(loop, "thread_y" if name == "m.1" else "thread_x")
        else:
            s.unroll(loop)
    a, b = s.get_loops(out)[2:]
    a0, a1 = s.split(a, [threads[0], None])
    b0, b1 = s.split(b, [threads[1], None])
    s.reorder(a0, b0, a1, b1)
    for loop, kind in ((m0, "block_y"), (n0, "block_x"), (m1, "thread_y"), (n1, "thread_x")):
        s.bind(loop, kind)
    s.bind(a0, "thread_y")
    s.bind(b0, "thread_x")
    for loop in (m2, n2, a1, b1):
        s.unroll(loop)
    return s


def spread_all(function: te.Function, threads: int = 32) -> Schedule:
    """Each block of a function spread over threads, its results side by side; those of one result as they are."""
    s = Schedule(compiler.lower(function))
    for label in list(s.program.blocks):
        if any(axis.size > 1 for axis in s.program.blocks[label].axes if not axis.is_reduce):
            recipes.spread(s, s.get_block(label), threads)
    return s


def default(function: te.Function, rules: tuple[Rule, ...] = GPU_RULES, arch: str = "sm_80") -> Schedule:
    """A function as the rules of GPUs prefer it."""
    return preferred(Schedule(compiler.lower(function)), rules, representative_gpu(arch)).draft.schedule


def serial_blocks(program: Program, most: int = 1024) -> dict[str, int]:
    """The blocks of more iterations than `most` that one thread runs, and how many these are."""
    together = (*BLOCKS, *THREADS, "tensorized")
    collected = {}
    for label in program.blocks:
        loops = program.enclosing(label)
        count = prod(loop.extent for loop in loops)
        if count > most and all(loop.extent == 1 or loop.kind not in together for loop in loops):
            collected[label] = count
    return collected


def threads_of(s: Schedule) -> list[tuple[int, int]]:
    """The blocks and the threads of a block of each kernel."""
    kernel = compiler.build(s, "cuda")
    return [(prod(launch.grid), prod(launch.block)) for launch in kernel.launches]
