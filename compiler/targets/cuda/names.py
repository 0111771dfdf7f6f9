"""Names that the text of kernels reserves, so that no buffer of a program gets one."""

from __future__ import annotations

import re

from compiler.targets.clike.expressions import KEYWORDS
from compiler.targets.clike.numbers import NUMBERS
from compiler.targets.clike.operations import FUNCTIONS
from compiler.targets.cuda.helpers import COPIES, WARPS
from compiler.types.dtypes import DTYPES

_MATHEMATICS = frozenset(name + single for name in FUNCTIONS.values() for single in ("", "f"))
_DEFINED = frozenset(NUMBERS) | frozenset(re.findall(r"\b(\w+)\(", "\n".join((*COPIES.values(), *WARPS.values()))))
_BUILT_IN = frozenset(
    """threadIdx blockIdx blockDim gridDim warpSize pool min max Fragment INFINITY NAN T __half __nv_bfloat16
    NULL errno linux unix EOF assert alloca offsetof stdin stdout stderr half half2 dim3 size_t""".split()  # noqa: SIM905
)
_VECTORS = frozenset(f"{row.vector or 'uint'}{lanes}" for row in DTYPES.values() for lanes in (1, 2, 3, 4))

RESERVED = KEYWORDS | _MATHEMATICS | _DEFINED | _BUILT_IN | _VECTORS
"""Reserved names, like those that begin with two underscores: variables of such names get the prefix `_`."""
