"""`bind-sizes`: values for the sizes of te functions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from compiler.support.errors import InputError
from compiler.te.bound import bind

_VALUE = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(\d+)\s*", re.ASCII)


@dataclass(frozen=True)
class BindSizesPass(ModulePass):
    """Give values to the sizes of te functions, which then have none.

        func.func @f(%X: tensor<512x8xf32> {te.dims = #te.dims<[S, 8]>}) attributes {te.sizes = #te.sizes<S = 1 to 512>}
      ->
        func.func @f(%X: tensor<100x8xf32>)

    `values` are sizes with their values, "S=100, T=3". Functions without sizes stay. Raises InputError for values of
    another form, of an unknown size or outside a range, and for a size without a value.
    """

    name = "bind-sizes"
    anchor: ClassVar = "func.func"

    values: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        bind(op, _parsed(self.values))


def _parsed(text: str) -> dict[str, int]:
    """The values of sizes by name. Raises InputError for another form than `S=100, T=3`, and for two values of one."""
    values: dict[str, int] = {}
    for entry in text.split(",") if text.strip() else ():
        match = _VALUE.fullmatch(entry)
        if match is None:
            raise InputError(f"bind-sizes: '{entry.strip()}' is no size with a value, such as S=100")
        if match[1] in values:
            raise InputError(f"bind-sizes: the size '{match[1]}' has two values")
        values[match[1]] = int(match[2])
    return values
