"""How many cycles an iteration of a machine loop takes, all its data in L1: the most needed resource, or the latency.

Every instruction of the loop counts as executed once an iteration; a call costs nothing beyond itself. The register
tiles of the workloads reach 81 to 96% of the rate that follows; llvm-mca, asked for a like core, is 0 to 14% lower on
them, and once below what was measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from compiler.targets.cpu.instructions import Instruction
from compiler.types.machines import Machine

CAPACITY = {"front end": 6.0, "fma": 2.0, "vector": 2.0, "load": 2.0, "store": 1.0, "shuffle": 1.0, "scalar": 4.0}
"""What a cycle has of each resource: a large core with two units of 512 bits, as Intel's since Ice Lake are."""

_DIVISION = {"ss": 3.0, "sd": 4.0, "ps": 3.0, "pd": 4.0}
"""Cycles that a division or root holds the divider, at 128 bits; twice as wide takes twice as long."""

_LATENCY = {"division": 12.0, "fma": 4.0, "shuffle": 3.0}
_LOAD_LATENCY, _VECTOR_LATENCY, _FLOAT_LATENCY, _SCALAR_LATENCY = 5.0, 1.0, 4.0, 1.0
_STEPS = 8
"""Iterations that are simulated; the second half gives the cycles of one."""


@dataclass(frozen=True)
class Estimate:
    """Cycles of one iteration and what limits them; `pressure` is the cycles that each resource needs."""

    cycles: float
    limit: str
    pressure: Mapping[str, float]

    def percent_of_peak(self, flops: int, float_bits: int, machine: Machine) -> float | None:
        """Of two fma on whole vectors a cycle, in percent; None for a loop without floating-point operations."""
        if not flops or not float_bits or not self.cycles:
            return None
        return 100 * flops / (self.cycles * 4 * (machine.vector_bits // float_bits))


def estimate(instructions: Sequence[Instruction]) -> Estimate:
    """Cycles by the resource that is needed longest, or by the chain of results that each iteration waits for."""
    needs: Counter[str] = Counter()
    for instruction in instructions:
        needs.update(_needs(instruction))
    pressure = {name: needs[name] / CAPACITY[name] for name in CAPACITY}
    pressure |= {"divider": needs["divider"], "branch": float(sum("branch" in i.kinds for i in instructions))}
    pressure["latency"] = _recurrence(instructions)
    limit = max(pressure, key=pressure.__getitem__)
    return Estimate(pressure[limit], limit, {k: v for k, v in pressure.items() if v})


def _needs(i: Instruction) -> dict[str, float]:
    """What an instruction takes of each resource, in units of its capacity."""
    parts = i.lanes_moved if {"gather", "scatter"} & i.kinds else 1
    needs = {"front end": 1.0 if parts == 1 else float(parts)}
    if "load" in i.kinds:
        needs["load"] = float(parts)
    if "store" in i.kinds:
        needs["store"] = float(parts)
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
    """Cycles by which each iteration ends after the one before, if nothing but waiting for operands took time."""
    written = {name for i in instructions for name in i.written}
    ready: dict[str, float] = {}
    ends = []
    for _ in range(_STEPS):
        for i in instructions:
            _execute(i, ready, written)
        ends.append(max(ready.values(), default=0.0))
    return (ends[-1] - ends[_STEPS // 2 - 1]) / (_STEPS // 2)


def _execute(i: Instruction, ready: dict[str, float], changing: set[str]) -> None:
    """Note when the result of an instruction is ready. An address that never changes is followed like a register."""
    fixed = i.memory if i.memory is not None and not changing & set(i.addressed) else None
    start = max((ready.get(name, 0.0) for name in i.read), default=0.0)
    if "load" in i.kinds:
        address = max((ready.get(name, 0.0) for name in i.addressed), default=0.0)
        start = max(start, address + _LOAD_LATENCY, ready.get(fixed, 0.0) if fixed else 0.0)
    end = start + (0.0 if i.is_move else _latency(i))
    for name in i.written:
        ready[name] = end
    if "store" in i.kinds and fixed:
        ready[fixed] = end + _LOAD_LATENCY


def _latency(i: Instruction) -> float:
    for kind, cycles in _LATENCY.items():
        if kind in i.kinds:
            return cycles
    if i.float_bits or i.mnemonic.startswith(("vcvt", "vrnd", "vscalef")):
        return _FLOAT_LATENCY
    return _VECTOR_LATENCY if i.bits else _SCALAR_LATENCY
