"""Throughput: cycles and limits of small loops."""

from __future__ import annotations

import dataclasses

import pytest

from compiler.targets.cpu.instructions import Instruction, parse_instruction
from compiler.targets.cpu.throughput import estimate
from compiler.types.machines import host


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
    actual = estimate(loop(text))
    assert actual.limit == limit
    assert actual.cycles == pytest.approx(cycles)


def test_a_chain_ends_at_a_register_that_is_cleared_or_reloaded() -> None:
    chained = "vaddps %zmm1, %zmm0, %zmm0\n"
    assert estimate(loop(chained)).limit == "latency"
    assert estimate(loop("vxorps %xmm0, %xmm0, %xmm0\n" + chained)).limit != "latency"
    walking = "vmovss (%rax), %xmm0\nvaddss %xmm1, %xmm0, %xmm0\nvmovss %xmm0, (%rax)\naddq $4, %rax"
    assert estimate(loop(walking)).limit != "latency"


def test_the_part_of_the_peak() -> None:
    machine = dataclasses.replace(host(), vector_bits=512)
    assert estimate(loop(TILE)).percent_of_peak(512, 32, machine) == pytest.approx(100)
    assert estimate(loop(TILE)).percent_of_peak(
        512, 32, dataclasses.replace(machine, vector_bits=256)
    ) == pytest.approx(200)
    assert estimate(loop("nop")).percent_of_peak(0, 0, machine) is None
