"""Throughput: the count by hand on small loops, llvm-mca's answer as stored, and what happens without it."""

from __future__ import annotations

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import pytest

from compiler.targets.cpu import throughput
from compiler.targets.cpu.instructions import Instruction, parse_instruction
from compiler.targets.cpu.throughput import RELATIVES, VERSIONS, by_count, estimate, find_mca, read_mca
from compiler.targets.machine import host


def loop(text: str) -> list[Instruction]:
    return [parse_instruction(line) for line in text.strip().splitlines()]


TILE = "".join(f"vfmadd231ps %zmm{30 + n % 2}, %zmm29, %zmm{n}\n" for n in range(16))


@pytest.mark.parametrize(
    ("text", "cycles", "limit"),
    [
        (TILE, 8.0, "fma"),
        ("vfmadd231ps %zmm1, %zmm2, %zmm3", 4.0, "latency"),
        ("vmulss %xmm1, %xmm0, %xmm0\nvaddss %xmm2, %xmm0, %xmm0", 8.0, "latency"),
        ("vmovups (%rax), %zmm0\n" * 6, 3.0, "load"),
        ("vmovups %zmm0, (%rax)\n" * 3, 3.0, "store"),
        ("vpermps %zmm0, %zmm1, %zmm2\n" * 5, 5.0, "shuffle"),
        ("vdivps %zmm0, %zmm1, %zmm2", 12.0, "divider"),
        ("vgatherdps (%rax,%zmm1,4), %zmm2 {%k1}", 8.0, "load"),
        ("nop\n" * 12, 2.0, "front end"),
        ("vmovss (%rsp), %xmm0\nvaddss %xmm1, %xmm0, %xmm0\nvmovss %xmm0, (%rsp)", 9.0, "latency"),
    ],
)
def test_the_limit(text: str, cycles: float, limit: str) -> None:
    found = by_count(loop(text))
    assert (found.limit, found.source) == (limit, "count of ports")
    assert found.cycles == pytest.approx(cycles)


def test_a_chain_ends_at_a_register_that_is_cleared_or_reloaded() -> None:
    chained = "vaddps %zmm1, %zmm0, %zmm0\n"
    assert by_count(loop(chained)).limit == "latency"
    assert by_count(loop("vxorps %xmm0, %xmm0, %xmm0\n" + chained)).limit != "latency"
    walking = "vmovss (%rax), %xmm0\nvaddss %xmm1, %xmm0, %xmm0\nvmovss %xmm0, (%rax)\naddq $4, %rax"
    assert by_count(loop(walking)).limit != "latency"


def test_the_part_of_the_peak() -> None:
    machine = dataclasses.replace(host(), vector_bits=512)
    assert by_count(loop(TILE)).percent_of_peak(512, 32, machine) == pytest.approx(100)
    assert by_count(loop(TILE)).percent_of_peak(
        512, 32, dataclasses.replace(machine, vector_bits=256)
    ) == pytest.approx(200)
    assert by_count(loop("nop")).percent_of_peak(0, 0, machine) is None


STORED = {
    "CodeRegions": [
        {
            "Instructions": ["vfmadd231ps", "addq"],
            "ResourcePressureView": {
                "ResourcePressureInfo": [
                    {"InstructionIndex": 0, "ResourceIndex": 1, "ResourceUsage": 1},
                    {"InstructionIndex": 2, "ResourceIndex": 0, "ResourceUsage": 0.25},
                    {"InstructionIndex": 2, "ResourceIndex": 1, "ResourceUsage": 3.9},
                ]
            },
            "SummaryView": {"DispatchWidth": 6, "Iterations": 100, "TotalCycles": 400, "TotaluOps": 200},
        }
    ],
    "TargetInfo": {"Resources": ["SKXFPDivider", "SKXPort05"]},
}


def test_the_answer_of_mca() -> None:
    found = read_mca(json.dumps(STORED), "stored")
    assert (found.cycles, found.limit, found.source) == (4.0, "port 5", "stored")
    assert found.pressure == pytest.approx({"divider": 0.25, "port 5": 3.9, "dispatch": 1 / 3})
    waiting = json.dumps(STORED).replace("3.9", "1.9")
    assert read_mca(waiting, "stored").limit == "latency"


def test_without_mca_or_with_one_that_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert estimate(loop(TILE), host(), None).source == "count of ports"
    assert estimate(loop(TILE), host(), "/no/such/llvm-mca").source == "count of ports"
    assert estimate(loop(TILE), host(), "/bin/false").source == "count of ports"
    monkeypatch.setattr(throughput, "program", lambda name: f"/x/{name}" if name == "llvm-mca-17" else None)
    find_mca.cache_clear()
    try:
        assert find_mca() == "/x/llvm-mca-17"
    finally:
        find_mca.cache_clear()


INSTALLED = [path for version in VERSIONS if (path := shutil.which(f"llvm-mca-{version}")) is not None]


@pytest.mark.skipif(not INSTALLED, reason="llvm-mca is not installed")
@pytest.mark.parametrize("cpu", ["sapphirerapids", "znver5", "a-processor-of-next-year"])
@pytest.mark.parametrize("tool", INSTALLED)
def test_mca_agrees_on_a_register_tile(tool: str, cpu: str) -> None:
    """Of each version: where its model of a processor has one unit of 512 bits, one that has two stands for it."""
    machine = dataclasses.replace(host(), cpu=cpu, vector_bits=512)
    found = estimate(loop(TILE), machine, tool)
    assert found.source.startswith("llvm-mca") and found.cycles == pytest.approx(8, rel=0.2)
    assert found.source.split(" for ")[1] in (cpu, *RELATIVES[512])


def pretended(tmp_path: Path, body: str) -> str:
    """A program that answers as llvm-mca."""
    tool = tmp_path / "mca"
    tool.write_text(f"#!{sys.executable}\nimport json, sys\nCPU = sys.argv[1].partition('=')[2]\n{body}")
    tool.chmod(0o755)
    return str(tool)


MODEL = """
units = {units}.get(CPU)
if units is None:
    sys.exit(1)
count = len([line for line in sys.stdin if line.strip()])
cycles = 100 * count // units
summary = dict(DispatchWidth=6, Iterations=100, TotalCycles=cycles, TotaluOps=100 * count)
told = dict(Instructions=["vfmadd231ps"] * count, SummaryView=summary)
told["ResourcePressureView"] = dict(ResourcePressureInfo=[])
print(json.dumps(dict(CodeRegions=[told], TargetInfo=dict(Resources=[]))))
"""


@pytest.mark.parametrize(
    ("units", "chosen", "cycles"),
    [
        ({"mine": 2, "sapphirerapids": 2}, "mine", 8),
        ({"mine": 1, "sapphirerapids": 1, "skylake-avx512": 2}, "skylake-avx512", 8),
        ({"icelake-server": 2}, "icelake-server", 8),
        ({"mine": 1, "sapphirerapids": 1}, "mine", 16),
        ({}, None, 8),
    ],
)
def test_the_model_that_is_asked(tmp_path: Path, units: dict[str, int], chosen: str | None, cycles: int) -> None:
    machine = dataclasses.replace(host(), cpu="mine", vector_bits=512)
    found = estimate(loop(TILE), machine, pretended(tmp_path, MODEL.replace("{units}", repr(units))))
    assert found.source == ("count of ports" if chosen is None else f"llvm-mca for {chosen}")
    assert found.cycles == pytest.approx(cycles)
