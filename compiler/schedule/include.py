"""`sched.include`: the steps of a recipe for one block, in one line of a script."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import index
from reprlib import repr as short
from typing import Protocol

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from compiler.dialects.sched import BlockType, SchedOp
from compiler.support.errors import ScheduleError

INCLUDER = "compiler.space.includes"
"""The module that expands includes."""
MACHINE = "sched.machine"
"""The attribute of a `transform.named_sequence` with the facts of the machine that its recipes are expanded for."""


@irdl_op_definition
class IncludeOp(SchedOp):
    """Apply the steps of a recipe to a block.

    ```mlir
    transform.named_sequence @schedule(%f: !transform.any_op {transform.readonly}) {
      %C = sched.get_block %f "C"
      sched.include @packed_product(%C) with {rows = 6 : i64, vectors = 2 : i64} way "gebp b" version "1f3a09c2"
      transform.yield
    }
    ```

    `recipe` is a search rule by its name, `way` one of its alternatives, the first without one. Sizes that are not
    stated are the recipe's own. `version` is the hash of the recipe's sources when the script was written. Elsewhere:
    transform.include of MLIR, with a named sequence.
    """

    name = "sched.include"

    recipe = prop_def(FlatSymbolRefAttrConstr)
    block = operand_def(BlockType)
    sizes = opt_prop_def(DictionaryAttr)
    way = opt_prop_def(StringAttr)
    version = opt_prop_def(StringAttr)

    assembly_format = "$recipe `(` $block `)` (`with` $sizes^)? (`way` $way^)? (`version` $version^)? attr-dict"

    @property
    def label(self) -> str:
        """The name of the block, if its handle comes from a `sched.get_block`; else empty."""
        name = self.block.owner.properties.get("label") if isinstance(self.block.owner, SchedOp) else None
        return name.data if isinstance(name, StringAttr) else ""

    @classmethod
    def of(cls, recipe: str, sizes: DictionaryAttr, way: str, version: str = "") -> IncludeOp:
        """Return a new op without its operand, the block; a size map, way or version that is empty is omitted."""
        properties = {
            "recipe": SymbolRefAttr(recipe),
            "sizes": sizes if sizes.data else None,
            "way": StringAttr(way) if way else None,
            "version": StringAttr(version) if version else None,
        }
        return cls.create(properties={name: value for name, value in properties.items() if value is not None})


@dataclass(frozen=True)
class Inclusion:
    """The steps of a script that replace one `sched.include`: the ops `first` to `end - 1`. recipe, block, way: as in
    the op. changed: whether the version of the recipe differs from the one that the script was written with."""

    recipe: str
    block: str
    way: str
    first: int
    end: int
    changed: bool = False

    @property
    def places(self) -> Sequence[int]:
        """The positions of the ops in the script."""
        return range(self.first, self.end)


class Includes(Protocol):
    """The interpreter of `sched.include`, which the recipes implement."""

    def apply(self, op: IncludeOp, label: str, judged: bool = True) -> None:
        """Apply a recipe to the block `label`, without legality checks if not `judged`. A refusal raises
        ScheduleError."""


def only_included(op: Operation) -> bool:
    """Whether an op is a `sched.get_block` whose handle only includes use: these find the block by its name."""
    uses = [use.operation for result in op.results for use in result.uses]
    return op.name == "sched.get_block" and bool(uses) and all(isinstance(user, IncludeOp) for user in uses)


def size_attribute(size: object) -> Attribute:
    """Encode a size, or a list of factors, as an attribute. Raises ScheduleError for any value that is neither an
    integer nor a list or tuple of them; and VerifyException or ValueError beyond 64 bits."""
    try:
        if isinstance(size, list | tuple):
            return DenseArrayBase.from_list(i64, [index(factor) for factor in size])
        return IntegerAttr(index(size), i64)  # type: ignore[arg-type]
    except TypeError:
        raise ScheduleError(f"{size!r} is no size: an integer, or a list of factors") from None


def sizes_attribute(sizes: Mapping[str, object]) -> DictionaryAttr:
    """Encode a map from the names of choices to sizes. Raises ScheduleError for a value that is no size, and for
    anything but a map of names."""
    if not isinstance(sizes, Mapping) or not all(isinstance(name, str) for name in sizes):
        raise ScheduleError(f"sizes is {short(sizes)}, expected sizes by the names of choices")
    return DictionaryAttr({name: size_attribute(size) for name, size in sizes.items()})


def included(op: IncludeOp, block: str) -> str:
    """Print an op as a call of `Schedule.include`; `block` is the variable of its block. The version is left out."""
    sizes = {} if op.sizes is None else {name: plain_size(size) for name, size in op.sizes.data.items()}
    stated = ", {" + ", ".join(f'"{name}": {size}' for name, size in sizes.items()) + "}" if sizes else ""
    way = "" if op.way is None else f', way="{op.way.data}"'
    return f'include("{op.recipe.string_value()}", {block}{stated}{way})'


def plain_size(size: Attribute) -> int | list[int]:
    """Decode a size, or a list of factors, from an attribute. Raises ScheduleError for any other attribute."""
    if isinstance(size, IntegerAttr):
        return size.value.data
    if isinstance(size, DenseArrayBase):
        return [int(factor) for factor in size.get_values()]
    if isinstance(size, ArrayAttr) and all(isinstance(factor, IntegerAttr) for factor in size):
        return [factor.value.data for factor in size]
    raise ScheduleError(f"{size} is no size: an integer, or a list of factors")
