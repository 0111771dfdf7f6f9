"""Estimate the cycles of a machine loop's iteration with data in L1: the busiest resource, or the recurrence.

Each instruction of the loop executes once an iteration; a call costs one instruction. The register tiles of the
workloads reach 81 to 96% of the estimated rate; llvm-mca for a similar core estimates 0 to 14% lower, once below the
measured rate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.targets.cpu.instructions import Instruction
from compiler.types.machines import Machine

CAPACITY = {"front end": 6.0, "fma": 2.0, "vector": 2.0, "load": 2.0, "store": 1.0, "shuffle": 1.0, "scalar": 4.0}
"""Instructions that each resource takes in a cycle: a large core with two 512-bit units, as Intel's since Ice Lake."""

CAPACITIES = {
    "x86_64": CAPACITY,
    "aarch64": {**CAPACITY, "front end": 4.0, "vector": 2 * 2 / 3, "shuffle": 2.0, "scalar": 3.0},
}
"""Map each architecture to its resources; AArch64 is Neoverse N1, whose two vector units have 128 bits; below 512 bits
an instruction takes 2/3. Source: Arm's Neoverse N1 Software Optimization Guide."""

_DIVISION = {"ss": 3.0, "sd": 4.0, "ps": 3.0, "pd": 4.0}
"""Cycles of the divider for a 128-bit division or root; twice the width takes twice as long."""

_LATENCY = {"division": 12.0, "fma": 4.0, "shuffle": 3.0}
_LOAD_LATENCY, _VECTOR_LATENCY, _FLOAT_LATENCY, _SCALAR_LATENCY = 5.0, 1.0, 4.0, 1.0
_STEPS = 8
"""The simulated iterations; the second half gives the cycles of one."""


@dataclass(frozen=True)
class Estimate:
    """The cycles of an iteration, their limit (a resource or "latency"), and the cycles that each limit requires,
    `pressure`, without those that require none."""

    cycles: float
    limit: str
    pressure: Mapping[str, float]

    def percent_of_peak(self, flops: int, float_bits: int, machine: Machine) -> float | None:
        """Return the percentage of the peak, two full-width fma a cycle, that an iteration with `flops` operations on
        elements of `float_bits` reaches; None without floating-point operations or cycles."""
        if not flops or not float_bits or not self.cycles:
            return None
        return 100 * flops / (self.cycles * 4 * (machine.vector_bits // float_bits))


def estimate(instructions: Sequence[Instruction], architecture: str = "x86_64") -> Estimate:
    """Estimate the cycles of an iteration: the larger of the busiest resource and the recurrence. architecture: a key
    of CAPACITIES. Without instructions all is 0."""
    capacity = CAPACITIES[architecture]
    needs: Counter[str] = Counter()
    for instruction in instructions:
        needs.update(_needs(instruction))
    pressure = {name: needs[name] / capacity[name] for name in capacity}
    pressure |= {"divider": needs["divider"], "branch": float(sum("branch" in i.kinds for i in instructions))}
    pressure["latency"] = _recurrence(instructions)
    limit = max(pressure, key=pressure.__getitem__)
    return Estimate(pressure[limit], limit, {k: v for k, v in pressure.items() if v})


def _needs(i: Instruction) -> dict[str, float]:
    """Map each resource that an instruction occupies to the issue slots it takes there; CAPACITY has the slots per
    cycle. The divider is in cycles. A resource that is not used is absent."""
    uops = i.lanes_moved if {"gather", "scatter"} & i.kinds else 1
    needs = {"front end": 1.0 if uops == 1 else float(uops)}
    if "load" in i.kinds:
        needs["load"] = float(uops)
    if "store" in i.kinds:
        needs["store"] = float(uops)
    if i.is_move or "branch" in i.kinds or "call" in i.kinds:
        return needs
    if not i.bits:
        return needs | {"scalar": 1.0}
    if "division" in i.kinds:
        return needs | {"divider": _DIVISION.get(i.mnemonic[-2:], 4.0) * max(1, i.bits // 128)}
    if "broadcast" in i.kinds and "load" in i.kinds and not i.float_bits:
        return needs
    needs["vector"] = 1.0 if i.bits == 512 else 2 / 3
    if "fma" in i.kinds or i.float_bits:
        needs["fma"] = 1.0
    if "shuffle" in i.kinds or ("broadcast" in i.kinds and "load" not in i.kinds):
        needs["shuffle"] = 1.0
    return needs


def _recurrence(instructions: Sequence[Instruction]) -> float:
    """Return the cycles between the ends of two iterations if operand latency is the only limit: the mean over the
    second half of _STEPS iterations."""
    written = {name for i in instructions for name in i.written}
    ready: dict[str, float] = {}
    ends = []
    for _ in range(_STEPS):
        for i in instructions:
            _execute(i, ready, written)
        ends.append(max(ready.values(), default=0.0))
    return (ends[-1] - ends[_STEPS // 2 - 1]) / (_STEPS // 2)


def _execute(i: Instruction, ready: dict[str, float], written_registers: set[str]) -> None:
    """Set in `ready`, by register, the cycle in which the results of an instruction are ready; registers without an
    entry are ready in cycle 0. A memory operand whose address registers are not among `written_registers`, those that
    the loop writes, is tracked like a register."""
    constant_address = i.memory if i.memory is not None and not written_registers & set(i.addressed) else None
    start = max((ready.get(name, 0.0) for name in i.read), default=0.0)
    if "load" in i.kinds:
        address = max((ready.get(name, 0.0) for name in i.addressed), default=0.0)
        start = max(start, address + _LOAD_LATENCY, ready.get(constant_address, 0.0) if constant_address else 0.0)
    end = start + (0.0 if i.is_move else _latency(i))
    for name in i.written:
        ready[name] = end
    if "store" in i.kinds and constant_address:
        ready[constant_address] = end + _LOAD_LATENCY


def _latency(i: Instruction) -> float:
    for kind, cycles in _LATENCY.items():
        if kind in i.kinds:
            return cycles
    if i.float_bits or i.mnemonic.startswith(("vcvt", "vrnd", "vscalef")):
        return _FLOAT_LATENCY
    return _VECTOR_LATENCY if i.bits else _SCALAR_LATENCY
