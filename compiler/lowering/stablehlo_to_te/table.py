"""`handles`: the table of handlers, by the name of an op or of a composite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from compiler.lowering.stablehlo_to_te.call import HloCall
from compiler.te.tensor import Tensor

HloResults: TypeAlias = Tensor | Sequence[Tensor]
HloHandler: TypeAlias = Callable[[HloCall], HloResults]
HANDLERS: dict[str, HloHandler] = {}
"""Map the name of each op with a te form to its handler, which raises LoweringError or TeError."""


def handles(*names: str) -> Callable[[HloHandler], HloHandler]:
    """Return a decorator that registers a handler for ops by name: `add` for stablehlo.add; a name with a dot is used
    as it is. A name must be registered once."""

    def register(handler: HloHandler) -> HloHandler:
        for name in names:
            full = name if "." in name else f"stablehlo.{name}"
            assert full not in HANDLERS, full
            HANDLERS[full] = handler
        return handler

    return register
