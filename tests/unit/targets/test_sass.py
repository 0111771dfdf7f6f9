"""Machine code of kernels, disassembled: trip counts, loads in flight, and the shares that recipes reach."""

from __future__ import annotations

import pytest

import compiler
from compiler import te
from compiler.recipes import spread
from compiler.schedule import Schedule
from compiler.targets.cuda import CudaKernel
from tools import sass

needs_nvdisasm = pytest.mark.skipif(not sass.is_available(), reason="there is no NVRTC or no nvdisasm")

LISTING = """
\t.section\t.text.f
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/                   HFMA2.MMA R2, -RZ, RZ, 0, 0 ;
.L_x_1:
        /*0020*/                   LDG.E.CONSTANT R4, [R8.64] ;
        /*0030*/                   LDG.E.CONSTANT R5, [R8.64+0x4] ;
        /*0040*/                   IADD3 R2, R2, 0x4, RZ ;
        /*0050*/                   UMOV UR4, 0x10 ;
.L_x_2:
        /*0060*/                   FFMA R6, R4.reuse, R5, R6 ;
        /*0070*/                   UIADD3 UR4, UR4, -0x2, URZ ;
        /*0080*/                   ISETP.NE.AND P0, PT, RZ, UR4, PT ;
        /*0090*/               @P0 BRA `(.L_x_2) ;
        /*00a0*/                   ISETP.GE.U32.AND P1, PT, R2, 0x64, PT ;
        /*00b0*/               @P1 CALL.REL.NOINC `(.L_x_3) ;
        /*00c0*/                   BRA `(.L_x_1) ;
.L_x_3:
        /*00d0*/                   EXIT ;
.L_x_4:
        /*00e0*/                   BRA `(.L_x_4);
"""


def test_instructions_are_weighted_by_trip_counts() -> None:
    ((name, code, labels),) = sass._kernels(LISTING)
    times = dict(zip((f"{i.address:x}" for i in code), sass.weights(code, sass.loops(code, labels)), strict=True))
    assert name == "f" and len(code) == 15
    assert times["10"] == times["d0"] == 1 and times["20"] == times["c0"] == 25 and times["60"] == 25 * 8
    assert sass.loads_before_use(code) == 2


def built(program: te.Function | Schedule, arch: str) -> CudaKernel:
    kernel = compiler.build(program, "cuda", arch=arch, schedule=None if isinstance(program, Schedule) else "auto")
    assert isinstance(kernel, CudaKernel)
    return kernel


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
@pytest.mark.parametrize("workload", ["conv 64x56x56 3x3", "conv 512x7x7 3x3", "matmul 127x333x511"])
def test_kernels_are_mostly_multiply_adds(workload: str, arch: str) -> None:
    kernel = built(sass.WORKLOADS[workload](), arch)
    largest = max(sass.executed(kernel, arch), key=lambda executed: executed.counts.total())
    assert largest.share("FFMA") >= 0.6 and largest.loads >= (8 if "conv" in workload else 4)
    assert all(executed.spill_bytes == 0 for executed in sass.executed(kernel, arch))


@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_the_tensor_cores_have_most_of_a_large_product(arch: str) -> None:
    (executed,) = sass.executed(built(sass.WORKLOADS["matmul 4096 f16"](), arch), arch)
    assert executed.share("HMMA") >= 0.52 and executed.spill_bytes == 0


@needs_nvdisasm
@pytest.mark.parametrize(
    ("workload", "opcode", "share"),
    [("attention 64 f16", "HMMA", 0.3), ("attention 128 f16", "HMMA", 0.35), ("attention 64", "FFMA", 0.65)],
)
def test_most_of_attention_is_products(workload: str, opcode: str, share: float) -> None:
    (executed,) = sass.executed(built(sass.WORKLOADS[workload](), "sm_80"), "sm_80")
    assert executed.share(opcode) >= share and executed.spill_bytes == 0


@needs_nvdisasm
@pytest.mark.parametrize("workload", ["conv 64x56x56 3x3 f16", "conv 256x56x56 1x1 f16", "matmul 127x333x511 f16"])
def test_tensor_cores_have_gathered_products_too(workload: str) -> None:
    """An element gathered takes a load, a permutation and a store: these bound the share."""
    executed = max(sass.executed(built(sass.WORKLOADS[workload](), "sm_80"), "sm_80"), key=lambda f: f.counts.total())
    assert executed.share("HMMA") >= (0.05 if "matmul" in workload else 0.09) and not executed.counts["FFMA"]
    assert executed.loads >= 6 and executed.spill_bytes == 0


@needs_nvdisasm
def test_all_multiply_adds_of_a_loop_are_counted() -> None:
    a, b = te.placeholder((64, 96), name="A"), te.placeholder((96, 64), name="B")
    s = Schedule(compiler.lower(te.function("mm", [a, b], te.nn.matmul(a, b, name="C"))))
    spread(s, s.get_block("C"), 64)
    (executed,) = sass.executed(built(s, "sm_80"), "sm_80")
    assert executed.counts["FFMA"] == 96


@needs_nvdisasm
def test_the_loop_over_a_panel_is_unrolled_on_sm_90() -> None:
    (executed,) = sass.executed(built(sass.WORKLOADS["matmul 4096"](), "sm_90"), "sm_90")
    assert executed.share("FFMA") >= 0.85 and executed.spill_bytes == 0
