"""Libraries for callers without Python: shared or static, with a header in C and one in C++.

description.py  `Description`: the interface of a library and of each of its versions, also as JSON
source.py       the C text of a library's functions
header.py       the headers
features.py     instruction set features as bits of CPUID
weights.py      safetensors files
*.c, *.hpp      the texts that source.py and header.py fill
statuses.py     the statuses that functions return
export.py       `export_program`: write a library and its companions
loading.py      `load`: a library as a kernel
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from compiler.support.deferral import lazy_names

if TYPE_CHECKING:
    from compiler.targets.cpu.library.loading import load

__all__ = ["load"]
__getattr__ = lazy_names(__name__, {"load": "loading"})
