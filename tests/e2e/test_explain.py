"""Explanations of workloads: every machine loop is traced to the program, and every second to a loop."""

from __future__ import annotations

from fractions import Fraction

import pytest

from compiler.bench import workloads
from compiler.explain.builds import builds
from compiler.explain.explanation import explain
from compiler.explain.nests import preorder


@pytest.mark.parametrize("name", ["mm_exp_mm", "softmax", "conv_7x7", "attention"])
def test_a_workload(name: str) -> None:
    workload = workloads.find(name, Fraction(1, 8))
    e = explain(builds(workload.function()), lambda kernel: workload.draw(0), calls=3, probe=lambda seconds: 1e11)
    assert e.codes and all(code.path for code in e.codes)
    named = {block for code in e.codes for block in code.path[-1].blocks}
    assert named <= {block for nest in preorder(e.nests) for block in nest.blocks}
    assert e.profile is not None and e.profile.peak == 1e11
    total = sum(e.profile.loops[nest.number].seconds for nest in e.nests)
    assert 0 < total < 2 * e.profile.profiled
    flops = sum(nest.flops or 0 for nest in e.nests)
    assert workload.flops <= 1.1 * flops and flops <= 3 * workload.flops
    assert {b.name for b in e.temporaries.buffers} <= named | {block for n in e.nests for block in n.blocks}
