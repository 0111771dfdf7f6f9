"""Machine code of kernels without a GPU: `python -m tools.sass [WORKLOAD ...] [--arch sm_80 ...]`.

Prints for each kernel of a workload's default schedule the instructions that a thread executes, the share of FFMA and
HMMA among them, the global loads before the first use, registers, bytes spilled, and bytes that a multiprocessor loads
at once (those loads times their width times the resident threads). Instructions are weighted by the
trip counts of their loops; code under a condition counts as executed. Needs NVRTC and nvdisasm, of the wheels
nvidia-cuda-nvrtc-cu12, nvidia-cuda-runtime-cu12 and nvidia-cuda-nvdisasm.
"""

from __future__ import annotations

import argparse
import re
import struct
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from math import prod
from pathlib import Path
from shutil import which

import compiler
from compiler import te
from compiler.support.errors import TargetError
from compiler.targets.cuda import ARCHITECTURES, CudaKernel, Launch, nvrtc, representative_gpu
from compiler.types.machines import Gpu

BRANCHES = ("BRA", "CALL.REL.NOINC", "JMP")
"""The opcodes of jumps to a label."""
GLOBAL_LOADS = ("LDG", "LDGSTS")
"""The opcodes of loads of global memory."""
WAITS = ("BAR", "DEPBAR")
"""The opcodes after which asynchronous copies count as used."""
_LINE = re.compile(
    r"/\*(?P<address>[0-9a-f]{4,})\*/\s+(?:@(?P<guard>!?U?PT?\d*)\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>[^;]*);"
)
_REGISTER = re.compile(r"\bU?R(?:Z|\d+)\b")


@dataclass(frozen=True)
class Instruction:
    """A machine instruction: its predicate or "", its opcode with modifiers, and its operands."""

    address: int
    guard: str
    opcode: str
    operands: tuple[str, ...]

    @property
    def name(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @property
    def target(self) -> str:
        """The register or predicate that the instruction writes first; empty for stores and jumps."""
        return (
            self.operands[0].removesuffix(".reuse") if self.operands and self.name not in ("STS", "STG", "BRA") else ""
        )


@dataclass(frozen=True)
class MachineLoop:
    """A loop of machine code: positions of its first and last instruction, and its iterations each time that it is
    entered."""

    first: int
    last: int
    trips: int


@dataclass(frozen=True)
class Executed:
    """The instructions that a thread of a kernel executes: their number by opcode without modifiers, the global loads
    before the first use of one, the registers of a thread, the bytes spilled, and the bytes of the loads before the
    first use."""

    kernel: str
    counts: Counter[str]
    loads: int
    registers: int
    spill_bytes: int
    load_bytes: int = 0

    def share(self, opcode: str) -> float:
        """Return the part of the instructions with an opcode, from 0 to 1."""
        return self.counts[opcode] / max(1, self.counts.total())


def is_available() -> bool:
    """Return whether NVRTC and nvdisasm are installed."""
    return nvrtc.is_available() and _disassembler() is not None


def executed(kernel: CudaKernel, arch: str) -> list[Executed]:
    """Return the instructions that a thread of each kernel executes on an architecture. Raises TargetError without
    NVRTC or nvdisasm, and for a loop without a constant trip count."""
    cubin = nvrtc.compiled(kernel.text, arch)
    found = []
    for name, code, labels in _kernels(disassembled(cubin.code)):
        resources = cubin.resources[name]
        counts: Counter[str] = Counter()
        for instruction, times in zip(code, weights(code, loops(code, labels)), strict=True):
            counts[instruction.name] += times
        del counts["NOP"]
        loads, bytes_ = loads_before_use(code), loads_before_use(code, width)
        found.append(Executed(name, counts, loads, resources.registers, resources.spill_bytes, bytes_))
    return found


def disassembled(cubin: bytes) -> str:
    """Return the listing of a cubin by nvdisasm. Raises TargetError if nvdisasm is not installed or fails."""
    path = _disassembler()
    if path is None:
        raise TargetError("machine code is listed by nvdisasm, which is not installed: install nvidia-cuda-nvdisasm")
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([path, "-c", file.name], capture_output=True, text=True, check=False)
    if done.returncode:
        raise TargetError(f"nvdisasm fails: {done.stderr.strip()}")
    return done.stdout


def _disassembler() -> str | None:
    """Return the path of nvdisasm: of its wheel, or in PATH."""
    try:
        paths = [str(file.locate()) for file in files("nvidia-cuda-nvdisasm") or () if file.name == "nvdisasm"]
    except PackageNotFoundError:
        paths = []
    return next((path for path in paths if Path(path).exists()), which("nvdisasm"))


def _kernels(listing: str) -> list[tuple[str, list[Instruction], dict[str, int]]]:
    """Return the name, the instructions and the labels, with positions, of each kernel in a listing."""
    kernels = []
    for section in listing.split(".section\t.text.")[1:]:
        name = re.match(r"\w+", section)
        code: list[Instruction] = []
        labels: dict[str, int] = {}
        for line in section.splitlines():
            if label := re.match(r"(\.L\w+):", line):
                labels[label[1]] = len(code)
            elif match := _LINE.search(line):
                operands = tuple(part.strip() for part in match["rest"].split(",") if part.strip())
                code.append(Instruction(int(match["address"], 16), match["guard"] or "", match["opcode"], operands))
        kernels.append((name[0] if name else "", code, labels))
    return kernels


def _jump(instruction: Instruction, labels: dict[str, int]) -> int | None:
    """Return the position that an instruction jumps to; None for other instructions."""
    if not instruction.opcode.startswith(BRANCHES):
        return None
    label = re.search(r"\((\.L\w+)\)", " ".join(instruction.operands))
    return labels.get(label[1]) if label else None


def loops(code: Sequence[Instruction], labels: dict[str, int]) -> list[MachineLoop]:
    """Return the loops of machine code. Raises TargetError for one without a constant trip count."""
    ends: dict[int, int] = {}
    for position, instruction in enumerate(code):
        head = _jump(instruction, labels)
        if head is not None and head < position:
            ends[head] = position
    return [MachineLoop(first, last, _trips(code, labels, first, last)) for first, last in ends.items()]


def _trips(code: Sequence[Instruction], labels: dict[str, int], first: int, last: int) -> int:
    """Return the trip count of a loop: from the comparison of its counter with a constant before the jump out of it, or
    back, the counter's step and its first value. Raises TargetError if these are not constant."""
    for position in range(last, first - 1, -1):
        to = _jump(code[position], labels)
        leaves = to is not None and not first <= to <= last
        if to is None or not (leaves or (to == first and code[position].guard)):
            continue
        before = [*reversed(code[first:position]), *reversed(code[position : last + 1])]
        predicate = _predicate(code[position], before)
        for test in [i for i in before if i.name in ("ISETP", "UISETP") and i.target == predicate][:1]:
            numbers = [n for n in map(_number, test.operands[3:4] + test.operands[2:3]) if n is not None]
            counters = [r for r in test.operands[2:4] if _REGISTER.fullmatch(r.removesuffix(".reuse")) and "Z" not in r]
            if not numbers or not counters:
                continue
            counter = counters[0].removesuffix(".reuse")
            step = _step(code[first : last + 1], counter)
            if step:
                return max(1, -(-(numbers[0] - _start(code[:first], counter)) // step))
    raise TargetError(f"the loop at {code[first].address:#x} has no constant trip count")


def _predicate(jump: Instruction, before: Sequence[Instruction]) -> str:
    """Return the predicate that a comparison sets for a jump: its guard, a uniform predicate among its operands, or the
    uniform predicate that its guard is a copy of; `before` are the instructions before it, the last one first."""
    predicate = next((p for p in map(_uniform, jump.operands) if p), jump.guard.lstrip("!"))
    copies = [i for i in before if i.name == "PLOP3" and i.target == predicate][:1]
    return next((p for copy in copies for p in map(_uniform, copy.operands[1:]) if p), predicate)


def _uniform(operand: str) -> str:
    """Return the uniform predicate that an operand is; "" for other operands."""
    match = re.fullmatch(r"!?(UP\d)", operand)
    return match[1] if match else ""


def _step(body: Sequence[Instruction], counter: str) -> int:
    """Return the sum of the constants that a loop adds to its counter."""
    added = 0
    for instruction in body:
        if instruction.target == counter and instruction.name in ("IADD3", "UIADD3", "VIADD", "IADD"):
            added += sum(n for n in map(_number, instruction.operands[1:]) if n is not None)
    return added


def _start(code: Sequence[Instruction], counter: str) -> int:
    """Return the constant to which the last instruction that writes a counter sets it; 0 if it is no constant, and
    without such an instruction."""
    for instruction in reversed(code):
        if instruction.target == counter:
            if instruction.name == "HFMA2":
                halves = [float(part) for part in instruction.operands[-2:]]
                return int.from_bytes(struct.pack("<2e", halves[1], halves[0]), "little")
            return next((n for n in map(_number, instruction.operands[1:]) if n), 0)
    return 0


def _number(operand: str) -> int | None:
    """Return the value of a constant operand, with a sign; None for others."""
    if re.fullmatch(r"U?RZ", operand):
        return 0
    if not re.fullmatch(r"-?0x[0-9a-f]+", operand):
        return None
    value = int(operand, 16)
    return value - (1 << 32) if value >= 1 << 31 else value


def weights(code: Sequence[Instruction], found: Sequence[MachineLoop]) -> list[int]:
    """Return the execution count of each instruction: the product of the trip counts of the loops around it."""
    times = [1] * len(code)
    for loop in found:
        if loop.first != loop.last:  # the jump to itself at the end of a kernel
            for position in range(loop.first, loop.last + 1):
                times[position] *= loop.trips
    return times


def width(load: Instruction) -> int:
    """Return the bytes of a thread's load: 16 of LDG.E.128, 4 of LDG.E."""
    widths = {"128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
    return next((widths[part] for part in load.opcode.split(".")[1:] if part in widths), 4)


def bytes_in_flight(run: Executed, launch: Launch, gpu: Gpu) -> int:
    """Return the bytes that a multiprocessor loads at once: those of a thread before the first use, times the threads
    that are resident by registers, shared memory and the number of blocks."""
    blocks, threads = prod(launch.grid), prod(launch.block)
    registers = gpu.registers // (-(-run.registers // 8) * 8 * threads)
    shared = gpu.shared_bytes // max(1, launch.shared_bytes + launch.declared_bytes)
    resident = min(gpu.threads // threads, registers, shared, -(-blocks // gpu.multiprocessors))
    return run.load_bytes * threads * resident


def loads_before_use(code: Sequence[Instruction], weight: Callable[[Instruction], int] = lambda load: 1) -> int:
    """Return the most global loads, in the order of the code, before an instruction that uses one of them; the sum of
    their weights."""
    most, pending, copies = 0, set[str](), 0
    loads = 0
    for instruction in code:
        if instruction.name in WAITS:
            most, copies = max(most, copies), 0
        used = {r for part in instruction.operands[1 if instruction.target else 0 :] for r in _REGISTER.findall(part)}
        if used & pending:
            most, pending, loads = max(most, loads), set(), 0
        if instruction.name == "LDGSTS":
            copies += weight(instruction)
        elif instruction.name == "LDG":
            pending.add(instruction.target)
            loads += weight(instruction)
    return max(most, loads, copies)


def _convolution(
    o: int, c: int, h: int, taps: int, stride: int = 1, padding: int | None = None, dtype: str = "f32"
) -> te.Function:
    x, w = te.placeholder((1, c, h, h), dtype, name="X"), te.placeholder((o, c, taps, taps), dtype, name="W")
    border = taps // 2 if padding is None else padding
    return te.function("conv", [x, w], te.nn.conv2d(x, w, stride=stride, padding=border, dtype="f32", name="C"))


def _product(m: int, n: int, k: int, dtype: str = "f32") -> te.Function:
    a, b = te.placeholder((m, k), dtype, name="A"), te.placeholder((k, n), dtype, name="B")
    return te.function("mm", [a, b], te.nn.matmul(a, b, dtype="f32", name="C"))


def _rows(operator: Callable[..., te.Tensor], weights: int, rows: int, length: int) -> te.Function:
    x = te.placeholder((rows, length), name="X")
    others = [te.placeholder((length,), name=name) for name in "VW"[:weights]]
    return te.function("rows", [x, *others], operator(x, *others))


def _attention(depth: int, dtype: str = "f16") -> te.Function:
    q, k, v = (te.placeholder((1, 32, 1024, depth), dtype, name=name) for name in "QKV")
    return te.function("attention", [q, k, v], te.nn.attention(q, k, v))


WORKLOADS: dict[str, Callable[[], te.Function]] = {
    "conv 64x56x56 3x3": lambda: _convolution(64, 64, 56, 3),
    "conv 128x28x28 3x3": lambda: _convolution(128, 128, 28, 3),
    "conv 512x7x7 3x3": lambda: _convolution(512, 512, 7, 3),
    "conv 128x28x28 3x3 stride 2": lambda: _convolution(128, 64, 56, 3, 2),
    "conv 128x28x28 1x1 stride 2": lambda: _convolution(128, 64, 56, 1, 2),
    "stem 64x112x112 7x7 stride 2": lambda: _convolution(64, 3, 224, 7, 2),
    "patches 768x14x14 16x16 stride 16": lambda: _convolution(768, 3, 224, 16, 16, 0),
    "conv 64x56x56 3x3 f16": lambda: _convolution(64, 64, 56, 3, dtype="f16"),
    "conv 512x7x7 3x3 f16": lambda: _convolution(512, 512, 7, 3, dtype="f16"),
    "conv 256x56x56 1x1 f16": lambda: _convolution(256, 64, 56, 1, padding=0, dtype="f16"),
    "matmul 1024": lambda: _product(1024, 1024, 1024),
    "matmul 4096": lambda: _product(4096, 4096, 4096),
    "matmul 127x333x511": lambda: _product(127, 333, 511),
    "matmul 127x333x511 f16": lambda: _product(127, 333, 511, "f16"),
    "matmul 1000x1000x1000 f16": lambda: _product(1000, 1000, 1000, "f16"),
    "matmul 4096 f16": lambda: _product(4096, 4096, 4096, "f16"),
    "matmul 1x4096x4096": lambda: _product(1, 4096, 4096),
    "matmul 8x4096x4096": lambda: _product(8, 4096, 4096),
    "matmul 16x4096x4096": lambda: _product(16, 4096, 4096),
    "matmul 128x16384x128": lambda: _product(128, 128, 16384),
    "softmax 4096x1024": lambda: _rows(te.nn.softmax, 0, 4096, 1024),
    "softmax 4096x1000": lambda: _rows(te.nn.softmax, 0, 4096, 1000),
    "softmax 4096x1023": lambda: _rows(te.nn.softmax, 0, 4096, 1023),
    "log_softmax 4096x1024": lambda: _rows(te.nn.log_softmax, 0, 4096, 1024),
    "layer norm 4096x1024": lambda: _rows(te.nn.layer_norm, 2, 4096, 1024),
    "RMS norm 4096x1024": lambda: _rows(te.nn.rms_norm, 1, 4096, 1024),
    "sum 4096x4096": lambda: _rows(te.nn.sum, 0, 4096, 4096),
    "columns 65536x256": lambda: _rows(lambda x: te.nn.sum(x, 0), 0, 65536, 256),
    "attention 64 f16": lambda: _attention(64),
    "attention 128 f16": lambda: _attention(128),
    "attention 64": lambda: _attention(64, "f32"),
}
"""The workloads by name."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each kernel, workload and architecture; return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("workload", nargs="*", choices=[*WORKLOADS, []], help="default: all")
    parser.add_argument("--arch", nargs="*", default=["sm_80", "sm_90"], choices=ARCHITECTURES)
    stated = parser.parse_args(arguments)
    if not is_available():
        print("NVRTC or nvdisasm is not installed")
        return 0
    print("| workload | kernel | blocks x threads | shared bytes | arch | executed | FFMA | HMMA | loads |", end="")
    print(" registers | spilled | in flight |\n|---|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for workload in stated.workload or WORKLOADS:
        for arch in stated.arch:
            kernel = compiler.build(WORKLOADS[workload](), "cuda", arch=arch, schedule="auto")
            assert isinstance(kernel, CudaKernel)
            launches = {launch.name: launch for launch in kernel.launches}
            for run in executed(kernel, arch):
                print(_row(workload, launches[run.kernel], arch, run), flush=True)
    return 0


def _row(workload: str, launch: Launch, arch: str, run: Executed) -> str:
    blocks, threads = prod(launch.grid), prod(launch.block)
    cells: list[object] = [
        workload,
        run.kernel,
        f"{blocks} x {threads}",
        launch.shared_bytes + launch.declared_bytes,
        arch,
    ]
    cells += [run.counts.total(), f"{run.share('FFMA'):.0%}", f"{run.share('HMMA'):.0%}", run.loads, run.registers]
    cells += [run.spill_bytes, bytes_in_flight(run, launch, representative_gpu(arch))]
    return f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    raise SystemExit(main())
