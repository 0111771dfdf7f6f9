"""The files that the pages show: `strata examples` writes them to a folder."""

from __future__ import annotations

from pathlib import Path

from compiler.support.errors import InputError
from compiler.support.text import suggestion

FOLDER = Path(__file__).parent
FILES = {
    "mm_exp_mm.mlir": "matmul, exp, matmul, of tensors",
    "walk_schedule.mlir": "a schedule of it with an open choice",
    "gebp_schedule.mlir": "a schedule of a product of 512x512: panels, packing, a register tile",
    "gpu_matmul.mlir": "a product of 16x16 under a schedule for a GPU, as loops",
    "network.onnx": "a small residual network for images of 32x32, its batch a dimension N",
}
"""Each file, and what it is."""


def path(name: str) -> Path:
    """Return the path of one of the files. Raises InputError for an unknown name.

    >>> strata.examples.path("mm_exp_mm.mlir").name
    'mm_exp_mm.mlir'
    """
    if name not in FILES:
        there = f" (there are {', '.join(FILES)})"
        raise InputError(f"there is no example '{name}'{suggestion(str(name), FILES, there)}")
    return FOLDER / name
