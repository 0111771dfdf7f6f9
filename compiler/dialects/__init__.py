"""The dialects: te (whole tensors), loop (loop nests and blocks), sched (transform scripts)."""

from __future__ import annotations

import re

from xdsl.ir import Block, SSAValue


def _stem(cls: type, name: str | None) -> str | None:
    """Strip a suffix such as `_1_2` from a value's name: the printer appends it to equal names.

    None for a value without a name, or with nothing but a suffix. xDSL strips only `_2`: a name in the text could then
    equal one of the printer's.
    """
    stem: str | None = _cut(name)
    return None if stem is None else re.sub(r"(_\d+)+\Z", "", stem) or None


_cut = SSAValue.extract_valid_name
for _named in (SSAValue, Block):
    setattr(_named, "extract_valid_name", classmethod(_stem))  # noqa: B010  # there is no hook
