"""Launches that no device takes are refused in a sentence, where a kernel is built and where it is checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.autotune.measure.gpu_builder import GpuBuilder
from compiler.driver.reference.subject import Subject
from compiler.schedule import Schedule
from compiler.support.errors import TargetError
from compiler.targets.cuda import ARCHITECTURES, nvrtc
from compiler.targets.cuda.machines import MACHINES, described, launch_limits
from tests.gpu_schedules import product, tiled

KIB = 1 << 10
SHARED = {"sm_70": 96, "sm_75": 64, "sm_80": 163, "sm_86": 99, "sm_87": 163, "sm_89": 99, "sm_90": 227}
SHARED |= {"sm_100": 227, "sm_103": 227, "sm_120": 99, "sm_121": 99}
"""KiB of shared memory a block. Source: CUDA C++ Programming Guide, specifications per compute capability."""


def bound(extents: dict[str, int]) -> Schedule:
    """A function whose loops have these extents, each bound to what it is called after."""
    x = te.placeholder(tuple(extents.values()), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute(x.shape, lambda *i: x[i] + 1.0, name="Y"))))
    for loop, kind in zip(s.get_loops(s.get_block("Y")), extents, strict=True):
        s.bind(loop, kind)
    return s


def held(kib: int) -> Schedule:
    """A function that keeps so much in shared memory."""
    x = te.placeholder((4, kib * KIB // 4), name="X")
    s = Schedule(compiler.lower(te.function("f", [x], te.compute(x.shape, lambda i, j: x[i, j] + 1.0, name="Y"))))
    block = s.get_block("Y")
    i, _ = s.get_loops(block)
    s.compute_at(s.cache_read(block, "X", "shared"), i)
    s.bind(i, "block_x")
    return s


REFUSED: dict[str, tuple[Callable[[], Schedule], str]] = {
    "threads": (lambda: bound({"thread_x": 1025}), "1025 threads a block, more than 1024"),
    "threads along all": (lambda: bound({"thread_y": 64, "thread_x": 32}), "2048 threads a block, more than 1024"),
    "threads along z": (lambda: bound({"thread_z": 65}), "65 threads a block along z, more than 64"),
    "blocks along y": (lambda: bound({"block_y": 100_000}), "100000 blocks along y, more than 65535"),
    "blocks along z": (lambda: bound({"block_z": 65_536}), "65536 blocks along z, more than 65535"),
    "blocks along x": (lambda: bound({"block_x": 1 << 31}), "2147483648 blocks along x, more than 2147483647"),
    "shared memory": (lambda: held(322), "329728 bytes of shared memory a block, more than 166912"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_launch_beyond_the_limits_is_refused(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, reason = REFUSED[name]
    s = make()
    with pytest.raises(TargetError, match=f"kernel f_Y has {reason} on sm_80"):
        compiler.build(s, "cuda", arch="sm_80")
    path = tmp_path / "f.mlir"
    path.write_text(str(s.module))
    assert main(["check", str(path), "--arch", "sm_80"]) == 1
    assert f"kernel f_Y has {reason} on sm_80" in capsys.readouterr().err


@pytest.mark.parametrize("extents", [{"block_y": 65_535}, {"thread_z": 64}, {"thread_x": 1024}, {"block_x": 100_000}])
def test_the_limits_themselves_are_kept(extents: dict[str, int]) -> None:
    assert compiler.build(bound(extents), "cuda").launches


def test_every_architecture_is_described() -> None:
    assert {arch: gpu.block_shared_bytes // KIB for arch, gpu in MACHINES.items()} == SHARED
    assert set(ARCHITECTURES) <= set(SHARED)


def test_a_device_is_described_by_its_own_facts() -> None:
    facts = {"multiProcessorCount": 132, "memoryClockRate": 3_201_000, "memoryBusWidth": 6144, "clockRate": 1_980_000}
    h200 = described("sm_90", "NVIDIA H200", facts)
    assert (h200.name, h200.multiprocessors, h200.fmas) == ("NVIDIA H200", 132, MACHINES["sm_90"].fmas)
    assert h200.bandwidth == pytest.approx(4.917e12, rel=0.01) and h200.clock == 1.98e9
    unknown = described("sm_101", "Thor", {"multiProcessorCount": 20, "sharedMemPerBlockOptin": 100 * KIB})
    assert unknown == replace(
        MACHINES["sm_100"], name="Thor", arch="sm_101", multiprocessors=20, block_shared_bytes=100 * KIB
    )
    assert described("sm_60", "P100", {}) == replace(MACHINES["sm_70"], name="P100", arch="sm_60")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_shared_memory_is_that_of_the_architecture(arch: str) -> None:
    most = SHARED[arch]
    assert compiler.build(held(most), "cuda", arch=arch).launches[0].shared_bytes == most * KIB
    with pytest.raises(TargetError, match=f"more than {most * KIB} on {arch}"):
        compiler.build(held(most + 1), "cuda", arch=arch)


def test_an_architecture_that_is_not_described_has_the_largest_limits() -> None:
    assert launch_limits("sm_999") == replace(MACHINES["sm_90"], arch="sm_999")
    with pytest.raises(TargetError, match="on sm_999"):
        compiler.build(held(228), "cuda", arch="sm_999")


def test_a_kernel_for_one_architecture_is_refused_on_a_smaller_one() -> None:
    kernel = compiler.build(held(100), "cuda", arch="sm_80")
    with pytest.raises(TargetError, match="102400 bytes of shared memory a block, more than 65536 on sm_75"):
        kernel.cubin("sm_75")


def test_a_candidate_beyond_the_limits_is_an_outcome() -> None:
    s = bound({"block_y": 100_000})
    subject = Subject(str(s.original), None, "contract", 1, 0, "cuda", "sm_80")
    outcome = GpuBuilder(subject)(str(s.script))
    assert outcome.kind == "build" and "100000 blocks along y, more than 65535 on sm_80" in outcome.reason


@pytest.mark.skipif(not nvrtc.is_available(), reason="there is no NVRTC")
@pytest.mark.parametrize("kib", [40, 100])
def test_resources_say_all_shared_memory(kib: int) -> None:
    """That which the text declares, and that which the launch asks for."""
    (actual,) = compiler.build(held(kib), "cuda").resources("sm_80").values()
    assert actual.shared_bytes == kib * KIB


def test_declared_and_asked_for_are_told_apart() -> None:
    (launch,) = compiler.build(tiled(product()), "cuda").launches
    assert (launch.shared_bytes, launch.declared_bytes) == (0, 1024)
    (launch,) = compiler.build(held(100), "cuda").launches
    assert (launch.shared_bytes, launch.declared_bytes) == (100 * KIB, 0)
