"""PTX that NVRTC made of the kernels of some programs, kept as text: `python -m tests.unit.targets.ptx.kept` writes it.

The first line of a file says in JSON, behind `//`, the launches and the buffers; the interpreter needs nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import compiler
from compiler import recipes, te
from compiler.dialects.numbers import dtype_of
from compiler.schedule import Schedule
from compiler.targets.cuda import CudaKernel, nvrtc
from compiler.targets.ptx import PtxBuffer, PtxLaunch, PtxResult, run_ptx
from compiler.types.policies import POLICIES

Array = np.ndarray[Any, Any]
FOLDER = Path(__file__).parent / "kept"
ARCH = "sm_80"


@dataclass(frozen=True)
class KeptText:
    """A text with its launches and buffers: (name, shape, dtype, whether it is an input, whether it is a result)."""

    text: str
    launches: tuple[PtxLaunch, ...]
    buffers: tuple[tuple[str, tuple[int, ...], str, bool, bool], ...]

    def run(self, inputs: Sequence[Array], text: str | None = None) -> PtxResult:
        """Run it, or another text with the same launches; the arrays of the result are those of the results alone."""
        given = iter(inputs)
        buffers = []
        for name, shape, dtype, is_input, _ in self.buffers:
            array = next(given) if is_input else np.zeros(shape, dtype)
            buffers.append(PtxBuffer(name, array, is_input))
        ran = run_ptx(self.text if text is None else text, self.launches, buffers)
        ran.arrays = [array for array, facts in zip(ran.arrays, self.buffers, strict=True) if facts[4]]
        return ran

    def inputs(self) -> list[Array]:
        """Random inputs: of integers within 40."""
        rng = np.random.default_rng(0)
        collected = []
        for _, shape, dtype, is_input, _ in self.buffers:
            if is_input:
                is_float = np.dtype(dtype).kind == "f"
                array = rng.standard_normal(shape) if is_float else rng.integers(0, 40, shape)
                collected.append(np.asarray(array).astype(dtype))
        return collected


def kept(name: str) -> KeptText:
    """Read a kept text."""
    return parsed((FOLDER / f"{name}.ptx").read_text())


def parsed(text: str) -> KeptText:
    """Read the text of a file."""
    facts = json.loads(text.splitlines()[0].removeprefix("//"))
    launches = tuple(
        PtxLaunch(name, tuple(grid), tuple(block), tuple(arguments), size)
        for name, grid, block, arguments, size in facts["launches"]
    )
    return KeptText(text, launches, tuple((b[0], tuple(b[1]), *b[2:]) for b in facts["buffers"]))


def text_of(kernel: CudaKernel, edited: str | None = None) -> str:
    """The file of a kernel, or of another text with its launches: without comments, and with its facts on top."""
    text = nvrtc.ptx(kernel.text if edited is None else edited, ARCH, POLICIES[kernel.policy].fused)
    lines = [line for line in re.sub(r"//[^\n]*", "", text).splitlines() if line.strip()]
    count = len(kernel.arguments) - kernel.outputs
    buffers = [(a.name, a.shape, str(np.dtype(a.dtype)), n < count, n >= count) for n, a in enumerate(kernel.arguments)]
    buffers += [(t.name, t.shape, str(dtype_of(t.element)), False, False) for t in kernel.source.temporaries]
    launches = [(l.name, l.grid, l.block, l.arguments, l.shared_bytes) for l in kernel.launches]
    facts = json.dumps({"launches": launches, "buffers": buffers})
    return "\n".join([f"//{facts}", *lines]) + "\n"


def _built(function: te.Function) -> CudaKernel:
    kernel = compiler.build(function, "cuda", arch=ARCH, schedule="auto")
    assert isinstance(kernel, CudaKernel)
    return kernel


def _on_warps(dtype: str, **facts: Any) -> CudaKernel:
    k = 96
    a, b = (
        te.placeholder((32, k), dtype, name="A"),
        te.placeholder((16, k) if dtype == "f32" else (k, 16), dtype, name="B"),
    )
    if dtype == "f32":
        r = te.reduce_axis(k, name="k")
        c = te.compute((32, 16), lambda i, j: te.sum(a[i, r] * b[j, r], axis=r), name="C")
    else:
        c = te.nn.matmul(a, b, dtype="f32", name="C")
    s = Schedule(compiler.lower(te.function("mm", [a, b], [c])))
    recipes.tile_on_warps(s, s.get_block("C"), None, recipes.WarpTiles(**facts))
    kernel = compiler.build(s, "cuda", arch=ARCH, policy="fast" if dtype == "f32" else "contract")
    assert isinstance(kernel, CudaKernel)
    return kernel


def _tiled() -> CudaKernel:
    from tests.gpu_schedules import product, tiled

    kernel = compiler.build(tiled(product(32, 24, 16)), "cuda", arch=ARCH)
    assert isinstance(kernel, CudaKernel)
    return kernel


def _rows_in_parts() -> CudaKernel:
    from tests.arrivals import rows_in_parts

    kernel = compiler.build(rows_in_parts(), "cuda", arch=ARCH)
    assert isinstance(kernel, CudaKernel)
    return kernel


def _convolution() -> CudaKernel:
    x, w = te.placeholder((1, 4, 7, 7), name="X"), te.placeholder((8, 4, 3, 3), name="W")
    s = Schedule(
        compiler.lower(te.function("layer", [x, w], te.nn.relu(te.nn.conv2d(x, w, padding=1, name="C"), name="Y")))
    )
    tiles = recipes.ThreadTiles(spatial=[(1, 1, 1), (2, 4, 1), (1, 7, 1), (1, 1, 7)], reduce=[4, 3, 3])
    recipes.tile_on_threads(s, s.get_block("C"), s.get_block("Y"), tiles)
    kernel = compiler.build(s, "cuda", arch=ARCH)
    assert isinstance(kernel, CudaKernel)
    return kernel


def _of(
    name: str, shapes: Sequence[tuple[int, ...]], make: Callable[..., Any], dtypes: Sequence[str] = ()
) -> CudaKernel:
    names = [*dtypes, *["f32"] * (len(shapes) - len(dtypes))]
    tensors = [
        te.placeholder(shape, dtype, name="XYZ"[n]) for n, (shape, dtype) in enumerate(zip(shapes, names, strict=True))
    ]
    return _built(te.function(name, tensors, make(*tensors)))


PROGRAMS: dict[str, Callable[[], CudaKernel]] = {
    "product": _tiled,
    "product_f16": lambda: _on_warps("f16", warps=(2, 1), matrices=(1, 2), panel=2, twice=True),
    "product_stages": lambda: _on_warps("f16", warps=(1, 1), matrices=(1, 2), panel=1, twice=True, stages=4),
    "product_tf32": lambda: _on_warps("f32", warps=(1, 2), matrices=(2, 1), panel=4, vector=4),
    "convolution": _convolution,
    "softmax": lambda: _of("softmax", [(3, 150)], te.nn.softmax),
    "layer_norm": lambda: _of("norm", [(3, 70), (70,), (70,)], te.nn.layer_norm),
    "transpose": lambda: _of("transposed", [(33, 20)], te.nn.transpose),
    "columns": lambda: _of("columns", [(200, 40)], lambda x: te.nn.sum(x, 0)),
    "gather": lambda: _of("gather", [(40, 9), (12,)], te.nn.gather, ("f32", "i32")),
    "attention": lambda: _of("attention", [(2, 12, 8), (2, 12, 8), (2, 12, 8)], te.nn.attention),
    "arrival": _rows_in_parts,
    "power": lambda: _of("power", [(24,), (24,)], te.nn.pow, ("i32", "i32")),
}

if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, make in PROGRAMS.items():
        (FOLDER / f"{name}.ptx").write_text(text_of(make()))
        print(name)
