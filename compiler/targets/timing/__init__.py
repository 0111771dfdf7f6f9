"""timing: the estimated time of kernels, and what it is bound by, without a GPU.

code.py         instructions and loops, as the warps of a kernel execute them
values.py       SSA values as linear forms and as numbers of sampled threads
access.py       sectors of global memory, rounds of shared memory
counts.py       instructions of an op
emitter.py      code under construction, registers for values
memory.py       accesses to memory as instructions
kernel_code.py  the code of a kernel from its IR
order.py        loads before the uses of other loads
pipeline.py     a multiprocessor that executes code in order
time.py         the terms of the estimate
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from xdsl.dialects.builtin import MemRefType, ModuleOp

from compiler.dialects.functions import find_function
from compiler.targets.gpus import KernelResources
from compiler.targets.launches import KernelLaunch, read_host_function, shared_bytes
from compiler.targets.timing.code import SPILL, Code, Repeat, WarpInstruction, weighted
from compiler.targets.timing.kernel_code import KernelReader, registers_of
from compiler.targets.timing.order import with_loads_first
from compiler.targets.timing.time import KernelTime, KernelWork, kernel_time, total_seconds
from compiler.types.elements import element_bytes
from compiler.types.machines import Gpu

WORD = 4
"""Bytes of a register."""


def kernel_times(
    module: ModuleOp,
    gpu: Gpu,
    name: str | None = None,
    resources: Mapping[str, KernelResources] | None = None,
    in_order: bool = False,
) -> list[KernelTime]:
    """Estimate the time of each launch of a host function, by name or the only one, from the IR of its kernels.

    resources: the registers and spills that a compiler reports, by kernel's name; for a kernel without them registers
    are counted from the IR, and none spills. in_order: instructions stay in the order of the text, as in PTX; else
    loads begin early, as assemblers order them. Raises InputError for an op that a host function cannot have, a launch
    of an unknown kernel, and extents that are not constants.
    """
    host = read_host_function(module, find_function(module, name))
    return [kernel_time(work_of(launch, resources or {}, in_order), gpu) for launch in host.launches]


def work_of(launch: KernelLaunch, resources: Mapping[str, KernelResources], in_order: bool = False) -> KernelWork:
    """Return the work of a launch: its sizes, the bytes of its arrays, its registers (from `resources` by the kernel's
    name, or else of the IR), and its code, with the accesses to spilled registers. in_order: whether instructions stay
    in the order of the text; else loads begin early."""
    name = launch.kernel.sym_name.data
    arrays = [value.type for value in dict.fromkeys(launch.operands) if isinstance(value.type, MemRefType)]
    moved = sum(prod(type_.get_shape()) * element_bytes(type_.element_type) for type_ in arrays)
    reader, used = KernelReader(launch), resources.get(name)
    code = reader.read()
    registers = registers_of(launch.kernel) if used is None else used.registers
    if used is not None and used.spill_bytes:
        code += _spills(code, used.spill_bytes)
    last = reader.last_code if in_order else with_loads_first(reader.last_code)
    code = code if in_order else with_loads_first(code)
    blocks, shared = prod(launch.grid), shared_bytes(launch.kernel)
    return KernelWork(name, blocks, prod(launch.block), registers, shared, moved, code, last, blocks // reader.arrivals)


def _spills(code: list[Code], bytes: int) -> list[Code]:
    """Return a loop of loads of `bytes` of spilled registers, one for each word, that runs as often as the most
    frequent instruction: compilers spill values that live across the innermost loop. Requires an instruction."""
    most = max(times for _, times in weighted(code))
    accesses = [WarpInstruction(SPILL, ("spilled", n), (), rounds=1.0, is_load=True) for n in range(-(-bytes // WORD))]
    return [Repeat(most, accesses)]


__all__ = ["KernelTime", "KernelWork", "kernel_time", "kernel_times", "total_seconds", "work_of"]
