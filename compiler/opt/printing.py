"""The text of a module, by the printing options."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from io import StringIO
from math import isfinite

from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, DenseResourceAttr, ModuleOp, NameLoc
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.printer import Printer

from compiler.support.errors import InputError

ELIDED = "__elided__"
"""The name that stands for the elements of a constant, as in mlir-opt's output."""


def module_text(module: ModuleOp, options: argparse.Namespace) -> str:
    """Return a module as MLIR under the options of printing, ended by a line end. Changes the hints of names with
    `use_nameloc_as_prefix`."""
    if options.elide_elementsattrs_if_larger is not None:
        module = _elided(module, options.elide_elementsattrs_if_larger)
    if options.use_nameloc_as_prefix:
        _name_by_locations(module)
    stream = StringIO()
    _OptPrinter(stream, options).print_op(module)
    if options.print_op_generic:
        from compiler.dialects.dense import constants_in, trailer  # loads numpy

        stream.write(trailer(constants_in(module)))
    return stream.getvalue() + "\n"


class _OptPrinter(Printer):
    """xDSL's printer, with the options of strata-opt to omit regions and to add the users of results."""

    def __init__(self, stream: StringIO, options: argparse.Namespace) -> None:
        super().__init__(stream, print_generic_format=options.print_op_generic, print_debuginfo=options.print_debuginfo)
        self._regions = not options.print_skip_regions
        self._users = options.print_value_users

    def print_region(
        self,
        region: Region,
        print_entry_block_args: bool = True,
        print_empty_block: bool = True,
        print_block_terminators: bool = True,
    ) -> None:
        """Print a region; where regions are skipped, that of the module alone."""
        if self._regions or isinstance(region.parent, ModuleOp):
            super().print_region(region, print_entry_block_args, print_empty_block, print_block_terminators)
        else:
            self.print_string("{...}")

    def print_op(self, op: Operation) -> None:
        """Print an op, and behind it, if the options select it, a comment with the ops that use its results."""
        super().print_op(op)
        if self._users and op.results and op.parent is not None:
            self.print_string(f"  // {self._users_of(op.results)}")

    def print_float(self, value: float, type: AnyFloat) -> None:
        """Print a float; of a type that xDSL does not encode, such as f8E5M2, with all digits. Raises InputError for
        an infinity or NaN of such a type."""
        try:
            super().print_float(value, type)
        except NotImplementedError as error:
            if not isfinite(value):
                raise InputError(f"an infinity or NaN of type {type} cannot be printed") from error
            self.print_string(f"{value:.16e}")

    def _users_of(self, results: Iterable[SSAValue]) -> str:
        users = dict.fromkeys(use.operation for result in results for use in result.uses)
        named = (f"%{op.results[0].name_hint}" if op.results and op.results[0].name_hint else op.name for op in users)
        return f"users: {', '.join(named)}" if users else "unused"


def _elided(module: ModuleOp, limit: int) -> ModuleOp:
    """Copy a module with ELIDED for the elements of constants that have more of them than `limit`."""
    from compiler.dialects.dense import DenseAttr
    from compiler.dialects.dense_elements import Lost

    def shortened(attribute: Attribute) -> Attribute:
        if isinstance(attribute, DenseAttr) and _count(attribute.type) > limit:
            return DenseAttr.new(Lost(attribute.type, b"", ELIDED))
        if isinstance(attribute, DenseIntOrFPElementsAttr) and _count(attribute.type) > limit:
            return DenseResourceAttr.from_params(ELIDED, attribute.type)
        return attribute

    copy = module.clone()
    for op in copy.walk():
        for attributes in (op.properties, op.attributes):
            attributes.update({name: shortened(attribute) for name, attribute in attributes.items()})
    return copy


def _count(type: Attribute) -> int:
    from math import prod

    return prod(type.get_shape())  # type: ignore[attr-defined]


def _name_by_locations(module: ModuleOp) -> None:
    """Name the first result of each op with a location `loc("name")` so, if values may have this name."""
    for op in module.walk():
        location = op.location
        if isinstance(location, NameLoc) and op.results and SSAValue.is_valid_name(location.desc.data):
            op.results[0].name_hint = location.desc.data
