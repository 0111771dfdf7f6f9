"""Every workload on a GPU, with smaller extents: what a search begins with is proved, without a fault on numpy, and its
very text computes the reference on threads of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from compiler.bench import workloads
from compiler.bench.harness import fault
from compiler.driver import build_as_written
from compiler.pipeline.loops import lower, lower_to_kernels
from compiler.pipeline.source import parse
from compiler.recipes.rules import GPU_RULES
from compiler.schedule import Schedule, replay
from compiler.space.derivation import derive
from compiler.space.space import SketchSpace
from compiler.targets import simt
from compiler.targets.cuda import representative_gpu
from tests.host_cuda import needs_gxx, run_on_host
from tests.sample import all_asked

SMALLER = {
    "mm_exp_mm": "32x64x32x48",
    "matmul_512": "32x48x64",
    "matmul_1024": "64x32x64",
    "matmul_2048": "64x64x64",
    "matmul_127x333x511": "13x33x51",
    "batched": "3x16x8x24",
    "conv_7x7": "8x7x7x16",
    "conv_56x56": "4x14x14x8",
    "conv_grad_weight": "2x4x8x8",
    "conv_grad_weight_steps": "2x4x8x8",
    "softmax": "6x256",
    "layernorm": "5x192",
    "swish": "16x64",
    "attention": "1x32x8",
    "mlp": "16x49x32x10",
}


def test_none_is_left_out() -> None:
    assert SMALLER.keys() == workloads.PRESETS.keys()


LAST = list({preset.family: name for name, preset in workloads.PRESETS.items()}.values())
"""A workload of each family: of products the one that no tile divides."""


@pytest.mark.sampled
@needs_gxx
@pytest.mark.parametrize("name", SMALLER if all_asked() else LAST)
def test_it_is_right_on_numpy_and_on_the_host(name: str, tmp_path: Path) -> None:
    workload = workloads.find(f"{workloads.PRESETS[name].family}:{SMALLER[name]}")
    original = Schedule(lower(workload.function()))
    gpu = representative_gpu("sm_80")
    space = SketchSpace(derive(original, GPU_RULES, gpu).sketches, gpu)
    applied = replay(parse(space.script(space.defaults[0])), original.original)
    assert str(applied.verify()) == "proved"
    inputs = workload.draw(0)
    expected = workload.expected(inputs)
    module, _, _ = lower_to_kernels(applied.module.clone())
    checked = simt.run(module, inputs)
    assert checked.is_correct, [str(fault) for fault in checked.faults]
    assert fault(checked.outputs[0], expected) is None
    (on_host,) = run_on_host(build_as_written(applied, "cuda"), inputs, tmp_path)
    assert fault(on_host, expected) is None
