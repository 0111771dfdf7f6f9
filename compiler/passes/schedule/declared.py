"""The passes of the primitives, generated from their declarations: one for each primitive with an example for the
shell."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, field, make_dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir.affine import AffineMap
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from compiler.passes.schedule.scheduling_pass import SchedulingPass
from compiler.schedule import Handle, Schedule, primitives
from compiler.schedule.names import loop_named, loop_of
from compiler.schedule.parameters import (
    BLOCK,
    MAP,
    AttributeParameter,
    HandleParameter,
    Parameter,
    SizesParameter,
    Value,
)
from compiler.schedule.primitive import Primitive
from compiler.schedule.primitives import PRIMITIVES
from compiler.support.errors import ScheduleError


class PrimitivePass(SchedulingPass):
    """A pass that applies one primitive to the loops and blocks that its options name."""

    primitive: ClassVar[Primitive]

    def schedule(self, s: Schedule) -> None:
        """Apply the primitive; move the resulting block to the loop of the option `at`, if that is set. Raises
        ScheduleError for a refusal, and for an option's label or value that fits no argument."""
        with self._option("block"):
            block = s.get_block(getattr(self, "block")) if _has_block(self.primitive) else None  # noqa: B009
        kinds = {name: kind for name, kind in self.primitive.parameters.items() if kind.asked}
        values: list[object] = []
        for name, kind in kinds.items():
            with self._option(kind.option or name):
                value = self._argument(s, block, kind, getattr(self, kind.option or name))
            values += value if isinstance(kind, HandleParameter) and kind.several else [value]
        handles = s.call(self.primitive, *values)
        at = getattr(self, "at", None) if self.primitive.placed_by else None
        if at is not None:
            with self._option("at"):
                loop = loop_named(s, at)
            s.call(PRIMITIVES[self.primitive.placed_by], handles[0], loop)

    @contextmanager
    def _option(self, name: str) -> Iterator[None]:
        """Set this pass and the option `name` as the origin of a ScheduleError raised in a `with` body."""
        try:
            yield
        except ScheduleError as error:
            error.primitive, error.option = self.name, name
            raise

    def _argument(self, s: Schedule, block: Handle | None, kind: Parameter, value: Value) -> Value:
        """Convert an option's value to an argument of the primitive: labels to handles, -1 to None, text to a map;
        other values are returned unchanged. Raises ScheduleError for a label without a loop, and for an invalid map."""
        if value is None or kind is BLOCK:
            return block if kind is BLOCK else None
        if isinstance(kind, HandleParameter):
            if kind.anywhere:
                return loop_named(s, value)
            assert block is not None
            return [loop_of(s, block, label) for label in value] if kind.several else loop_of(s, block, value)
        if isinstance(kind, SizesParameter) and kind.inferred:
            return [None if size == -1 else size for size in value]
        return self._map(value) if isinstance(kind, AttributeParameter) and kind.constraint is MAP.constraint else value

    def _map(self, text: str) -> AffineMap:
        try:
            map = Parser(Context(), f"affine_map<{text}>").parse_attribute()
        except (ParseError, NotImplementedError) as error:  # what xDSL says to the product of two indices
            raise ScheduleError(f"'{text}' is not an affine map, such as (i, j) -> (j, i)", self.name) from error
        assert isinstance(map, AffineMapAttr)
        return map.data


def _has_block(primitive: Primitive) -> bool:
    """Return whether a primitive's pass has the option `block`: the primitive takes a block, or loops around one."""
    handles = [kind for kind in primitive.parameters.values() if isinstance(kind, HandleParameter)]
    return any(not kind.anywhere for kind in handles)


def make_pass(primitive: Primitive) -> type[SchedulingPass]:
    """Generate the pass class of a primitive: its options are the primitive's parameters, and `at` for a new block."""
    options: list[tuple[str, Value, Value]] = [("block", str, field())] if _has_block(primitive) else []
    defaults = inspect.signature(primitive.plan).parameters
    for name, kind in primitive.parameters.items():
        if kind is BLOCK or not kind.asked:
            continue
        default = defaults[name].default
        type_ = kind.type | None if default is None else kind.type
        options.append((kind.option or name, type_, field(default=MISSING if default is inspect._empty else default)))
    if primitive.placed_by:
        options.append(("at", str | None, field(default=None)))
    members = {
        "name": primitive.pass_name,
        "primitive": primitive,
        "__doc__": f"{primitive.summary}\n\n`{primitive.shell}`",
        "__module__": __name__,
    }
    title = "".join(word.capitalize() for word in primitive.pass_name.split("-"))
    return make_dataclass(f"{title}Pass", options, bases=(PrimitivePass,), namespace=members, frozen=True, kw_only=True)


PASSES: dict[str, type[SchedulingPass]] = {p.pass_name: make_pass(p) for p in PRIMITIVES.values() if p.shell}
"""The passes of the compiler's primitives, by name."""


def plugin_passes() -> dict[str, type[SchedulingPass]]:
    """Return the passes of plugins' primitives, by name."""
    return {p.pass_name: make_pass(p) for p in primitives.of_plugins().values() if p.shell}
