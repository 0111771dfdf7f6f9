"""The table of workloads, and the lookup by name, scale and extents."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from compiler.bench import contractions, rows
from compiler.bench.workload import Workload
from compiler.support.errors import InputError
from compiler.support.text import suggestion

Family = Callable[..., Workload]
WHOLE = Fraction(1)
LARGEST = 64 << 30
"""The maximum bytes of a workload's inputs and result."""


@dataclass(frozen=True)
class Preset:
    """A named workload: a family at its extents."""

    family: str
    extents: tuple[int, ...]


FAMILIES: dict[str, tuple[Family, str]] = {
    "mm_exp_mm": (contractions.mm_exp_mm, "MxKxLxN"),
    "matmul": (contractions.matmul, "MxKxN"),
    "batched": (contractions.batched, "BATCHxMxKxN"),
    "conv": (contractions.conv, "CHANNELSxHEIGHTxWIDTHxFILTERS"),
    "conv_grad_weight": (contractions.conv_grad_weight, "BATCHxCHANNELSxHEIGHTxWIDTH"),
    "conv_grad_weight_steps": (contractions.conv_grad_weight_steps, "BATCHxCHANNELSxHEIGHTxWIDTH"),
    "softmax": (rows.softmax, "ROWSxCOLUMNS"),
    "layernorm": (rows.layernorm, "ROWSxCOLUMNS"),
    "swish": (rows.swish, "ROWSxCOLUMNS"),
    "attention": (contractions.attention, "HEADSxLENGTHxDEPTH"),
    "mlp": (contractions.mlp, "BATCHxFEATURESxHIDDENxCLASSES"),
}
"""Map each family to its constructor, and to the form of its extents after NAME: on the command line."""

PRESETS: dict[str, Preset] = {
    "mm_exp_mm": Preset("mm_exp_mm", (1024, 2048, 1024, 3072)),
    "matmul_512": Preset("matmul", (512, 512, 512)),
    "matmul_1024": Preset("matmul", (1024, 1024, 1024)),
    "matmul_2048": Preset("matmul", (2048, 2048, 2048)),
    "matmul_127x333x511": Preset("matmul", (127, 333, 511)),
    "batched": Preset("batched", (12, 128, 64, 128)),
    "conv_7x7": Preset("conv", (512, 7, 7, 512)),
    "conv_56x56": Preset("conv", (64, 56, 56, 64)),
    "conv_grad_weight": Preset("conv_grad_weight", (8, 64, 28, 28)),
    "conv_grad_weight_steps": Preset("conv_grad_weight_steps", (8, 64, 28, 28)),
    "softmax": Preset("softmax", (4096, 1024)),
    "layernorm": Preset("layernorm", (4096, 768)),
    "swish": Preset("swish", (4096, 1024)),
    "attention": Preset("attention", (12, 512, 64)),
    "mlp": Preset("mlp", (256, 784, 512, 10)),
}


def find(name: str, scale: Fraction = WHOLE) -> Workload:
    """Find a workload by name, or a family (its own name or that of a workload in it) at extents, `NAME:AxBxC`; every
    extent is multiplied by `scale` and rounded, to at least 1.

    Raises InputError for an unknown name, a scale that is not positive, and extents that are missing, not positive,
    invalid for the family, or take more than LARGEST bytes.
    """
    if scale <= 0:
        raise InputError(f"the scale {scale} is not positive")
    preset = _preset(name)
    extents = [max(1, round(extent * scale)) for extent in preset.extents]
    made = replace(FAMILIES[preset.family][0](*extents), family=preset.family)
    if made.bytes > LARGEST:
        raise InputError(f"the workload '{name}' has {made.bytes / 1e9:.0f} GB of arrays, more than {LARGEST >> 30}")
    if scale != 1:
        return replace(made, what=f"{made.what} ({name} with every extent times {scale})")
    return replace(made, name=name) if name in PRESETS else made


def _preset(name: str) -> Preset:
    head, colon, text = name.partition(":")
    if not colon and head in PRESETS:
        return PRESETS[head]
    family = head if head in FAMILIES else PRESETS[head].family if head in PRESETS else None
    if family is None:
        hint = suggestion(head, [*PRESETS, *FAMILIES], f" (there are {', '.join(PRESETS)})")
        raise InputError(f"there is no workload '{head}'{hint}")
    form = FAMILIES[family][1]
    if not re.fullmatch(r"[1-9]\d*(x[1-9]\d*)*", text) or text.count("x") != form.count("x"):
        raise InputError(f"the workload '{name}' needs its extents as {head}:{form}")
    return Preset(family, tuple(int(extent) for extent in text.split("x")))
