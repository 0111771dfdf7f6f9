"""How many cycles an iteration of a machine loop takes, all its data in the first cache: llvm-mca, or a count by hand.

Both take every instruction of the loop to be executed in each iteration, and a call to cost nothing beyond itself.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from compiler.files import program
from compiler.targets.cpu.instructions import Instruction
from compiler.targets.machine import Machine

VERSIONS = range(30, 11, -1)
"""Of llvm-mca, as distributions name it, newest first."""

CAPACITY = {"front end": 6.0, "fma": 2.0, "vector": 2.0, "load": 2.0, "store": 1.0, "shuffle": 1.0, "scalar": 4.0}
"""What a cycle has of each resource: a large core with two units of 512 bits, as Intel's since Ice Lake are."""

RELATIVES = {512: ("sapphirerapids", "icelake-server", "skylake-avx512"), 256: ("haswell",), 128: ("x86-64",)}
"""Processors that stand for one whose model llvm-mca lacks or has wrong, by the width of its vectors."""

_DIVISION = {"ss": 3.0, "sd": 4.0, "ps": 3.0, "pd": 4.0}
"""Cycles that a division or root holds the divider, at 128 bits; twice as wide takes twice as long."""

_LATENCY = {"division": 12.0, "fma": 4.0, "shuffle": 3.0}
_LOAD_LATENCY, _VECTOR_LATENCY, _FLOAT_LATENCY, _SCALAR_LATENCY = 5.0, 1.0, 4.0, 1.0
_STEPS = 8
"""Iterations of which the second half shows how much later each next one ends."""

_REGISTERS = {512: "zmm", 256: "ymm", 128: "xmm"}
_PROBE = 12
"""Independent FMA of the loop that tests a model: enough to hide the latency of two units, in 16 registers."""

_MCA_SECONDS = 20
_MCA_INSTRUCTIONS = 20000


@dataclass(frozen=True)
class Estimate:
    """Cycles of one iteration, what limits them, and who says so; `pressure` is the cycles that each resource needs."""

    cycles: float
    limit: str
    source: str
    pressure: Mapping[str, float]

    def percent_of_peak(self, flops: int, float_bits: int, machine: Machine) -> float | None:
        """Of two fma on whole vectors a cycle, in percent; None for a loop without floating-point operations."""
        if not flops or not float_bits or not self.cycles:
            return None
        return 100 * flops / (self.cycles * 4 * (machine.vector_bits // float_bits))


def estimate(instructions: Sequence[Instruction], machine: Machine, tool: str | None = None) -> Estimate:
    """The estimate of llvm-mca, the program `tool`, or of a count where there is none or it refuses the loop."""
    found = None if tool is None else _by_mca(tool, instructions, machine)
    return by_count(instructions) if found is None else found


@cache
def find_mca() -> str | None:
    """The path of the newest llvm-mca that is installed."""
    names = [*(f"llvm-mca-{version}" for version in VERSIONS), "llvm-mca"]
    return next((path for name in names if (path := program(name)) is not None), None)


def by_count(instructions: Sequence[Instruction]) -> Estimate:
    """Cycles by the resource that is needed longest, or by the chain of results that each iteration waits for."""
    needs: Counter[str] = Counter()
    for instruction in instructions:
        needs.update(_needs(instruction))
    pressure = {name: needs[name] / CAPACITY[name] for name in CAPACITY}
    pressure |= {"divider": needs["divider"], "branch": float(sum("branch" in i.kinds for i in instructions))}
    pressure["latency"] = _recurrence(instructions)
    limit = max(pressure, key=pressure.__getitem__)
    return Estimate(pressure[limit], limit, "count of ports", {k: v for k, v in pressure.items() if v})


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


def _by_mca(tool: str, instructions: Sequence[Instruction], machine: Machine) -> Estimate | None:
    """The estimate of llvm-mca; None where it knows no such processor, or not an instruction."""
    cpu = _model(tool, machine)
    if cpu is None:
        return None
    repeats = max(10, min(100, _MCA_INSTRUCTIONS // max(1, len(instructions))))
    text = "".join(f"{instruction}\n" for instruction in instructions)
    try:
        return read_mca(_told(tool, cpu, repeats, text), f"{version_of(tool)} for {cpu}")
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return None


def _told(tool: str, cpu: str, repeats: int, text: str) -> str:
    command = [tool, f"-mcpu={cpu}", f"-iterations={repeats}", "-json"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=_MCA_SECONDS, check=True)
    return done.stdout


@cache
def _model(tool: str, machine: Machine) -> str | None:
    """The processor that llvm-mca is asked about: the machine's, or one like it.

    A model must know two FMA on whole vectors a cycle, which is what shares of the peak are of. llvm-mca 22 has one
    unit of 512 bits for sapphirerapids and znver5, which have two; older versions lack some processors.
    """
    known = [cpu for cpu in (machine.cpu, *RELATIVES[machine.vector_bits]) if _rate(tool, cpu, machine.vector_bits)]
    return next((cpu for cpu in known if _rate(tool, cpu, machine.vector_bits) > 1.5), known[0] if known else None)


@cache
def _rate(tool: str, cpu: str, bits: int) -> float:
    """FMA on whole vectors that a processor does in a cycle by the model of llvm-mca, 0 where it has none."""
    name = _REGISTERS[bits]
    loop = "".join(f"vfmadd231ps %{name}15, %{name}14, %{name}{n}\n" for n in range(_PROBE))
    try:
        return _PROBE / read_mca(_told(tool, cpu, 100, loop), cpu).cycles
    except (OSError, subprocess.SubprocessError, ValueError, LookupError):
        return 0.0


def read_mca(text: str, source: str) -> Estimate:
    """The estimate in llvm-mca's JSON. Raises ValueError or LookupError for other text."""
    told = json.loads(text)
    region = told["CodeRegions"][0]
    summary, count = region["SummaryView"], len(region["Instructions"])
    cycles = summary["TotalCycles"] / summary["Iterations"]
    names = [_resource(name) for name in told["TargetInfo"]["Resources"]]
    pressure = {
        names[one["ResourceIndex"]]: float(one["ResourceUsage"])
        for one in region["ResourcePressureView"]["ResourcePressureInfo"]
        if one["InstructionIndex"] == count
    }
    pressure["dispatch"] = summary["TotaluOps"] / summary["Iterations"] / summary["DispatchWidth"]
    busiest = max(pressure, key=pressure.__getitem__)
    limit = busiest if pressure[busiest] > 0.9 * cycles else "latency"
    return Estimate(cycles, limit, source, pressure)


def _resource(name: str) -> str:
    """A resource's name without the processor's: SKXPort0 is port 0, SKXFPDivider is divider."""
    port = re.search(r"[Pp]ort0?(\w+)$", name)
    return f"port {port[1]}" if port else re.sub(r"^[A-Z0-9]+(?=[A-Z][a-z])", "", name).lower()


@cache
def version_of(tool: str) -> str:
    """llvm-mca with its version."""
    try:
        said = subprocess.run([tool, "--version"], capture_output=True, text=True, timeout=_MCA_SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        said = ""
    found = re.search(r"version (\d+)", said)
    return f"llvm-mca {found[1]}" if found else "llvm-mca"
