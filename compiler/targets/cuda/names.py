"""The names that the text of kernels keeps to itself, so that no buffer of a program has one."""

from __future__ import annotations

import re

from compiler.targets.cuda.expressions import KEYWORDS
from compiler.targets.cuda.helpers import COPIES, NUMBERS, WARPS
from compiler.targets.cuda.operations import FUNCTIONS

_MATHEMATICS = frozenset(name + single for name in FUNCTIONS.values() for single in ("", "f"))
_DEFINED = frozenset(NUMBERS) | frozenset(re.findall(r"\b(\w+)\(", "\n".join((*COPIES.values(), *WARPS.values()))))
_BUILT_IN = frozenset(
    """threadIdx blockIdx blockDim gridDim warpSize pool min max Fragment INFINITY NAN T __half __nv_bfloat16
    float2 float3 float4""".split()  # noqa: SIM905
)

RESERVED = KEYWORDS | _MATHEMATICS | _DEFINED | _BUILT_IN
"""A buffer of such a name, and a variable, has an underscore before it."""
