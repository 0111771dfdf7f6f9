"""A block as an equation, such as `C[m, n] = add over k of A[m, k] * B[k, n]`."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from compiler.affine.linear import Linear, to_isl
from compiler.program.body import Apply, Index, Read, Scalar
from compiler.program.tree import Access, Block

SIGNS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
"""The signs of operations, by the middle of the names of ops such as arith.addf."""
MAX_CHARACTERS = 240
"""The number of characters of a subexpression that are shown."""


def equations_of(block: Block) -> list[str]:
    """The equation of each value that a block writes, over its axes; a gather's table is read at the index `?` where
    that is loaded."""
    names = {n: axis.label for n, axis in enumerate(block.axes)}
    over = ", ".join(axis.label for axis in block.axes if axis.is_reduce)
    reads = [_access(access, names) for access in block.reads]
    if block.table is not None:
        reads.append(f"{block.table.buffer}[{', '.join(_form(form, names) for form in block.table.index)}]")
    texts = list[str]()
    for number, (write, value) in enumerate(zip(block.writes, block.body, strict=True)):
        combiner = block.combiners[number] if block.combiners else None
        reduced = f"{combiner if isinstance(combiner, str) else 'combined'} over {over} of " if combiner else ""
        texts.append(f"{_access(write, names)} = {reduced}{_text(value, reads, names, {})}")
    return texts


def _access(access: Access, names: Mapping[int, str]) -> str:
    return f"{access.buffer}[{', '.join(_form(form, names) for form in access.index)}]"


def _form(form: Linear | int, names: Mapping[int, str]) -> str:
    return to_isl(form, names) if isinstance(form, Linear) else "?"


def _text(node: Scalar, reads: list[str], names: Mapping[int, str], texts: dict[int, str]) -> str:
    """An expression as text, with brackets around inner operations; `texts` has those of visited nodes."""
    if id(node) not in texts:
        match node:
            case Read(position):
                text = reads[position]
            case Index(axis):
                text = names[axis]
            case _:
                text = _applied(node, reads, names, texts)
        texts[id(node)] = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]} ..."
    return texts[id(node)]


def _applied(node: Apply, reads: list[str], names: Mapping[int, str], texts: dict[int, str]) -> str:
    kind = node.kind.name.partition(".")[2]
    if kind == "constant":
        return _constant(dict(node.properties)["value"])
    operands = [_text(operand, reads, names, texts) for operand in node.operands]
    sign = SIGNS.get(kind[:3])
    if sign is not None and len(operands) == 2:
        bracketed = [f"({t})" if _is_operation(o) else t for t, o in zip(operands, node.operands, strict=True)]
        return f" {sign} ".join(bracketed)
    return f"{kind}({', '.join(operands)})"


def _is_operation(node: Scalar) -> bool:
    return isinstance(node, Apply) and len(node.operands) == 2 and node.kind.name.partition(".")[2][:3] in SIGNS


def _constant(value: Attribute) -> str:
    return f"{value.value.data:g}" if isinstance(value, FloatAttr | IntegerAttr) else str(value)
