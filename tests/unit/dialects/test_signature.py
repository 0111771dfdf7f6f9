"""Computes of one signature are verified once; a change of anything that a verifier looks at is a new signature."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from xdsl.dialects.arith import MuliOp
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, f32, f64
from xdsl.utils.exceptions import VerifyException

from compiler import te
from compiler.dialects.access import AxisAttr
from compiler.dialects.dominance import verify_module
from compiler.dialects.signature import signature
from compiler.dialects.te import ComputeOp


def _compute(name: str = "S") -> ComputeOp:
    A, B = te.placeholder((4, 8), "f32", "A"), te.placeholder((4,), "f32", "B")
    k = te.reduce_axis(8, "k")
    function = te.function("f", [A, B], te.compute((4,), lambda i: te.sum(A[i, k] * B[i], axis=k), name))
    return next(op for op in function.module.walk() if isinstance(op, ComputeOp))


def _axes(op: ComputeOp) -> None:
    op.properties["axes"] = ArrayAttr([AxisAttr("i", 5), AxisAttr("k", 8, True)])


def _combiners(op: ComputeOp) -> None:
    op.properties["combiners"] = ArrayAttr([StringAttr("sub")])


def _reads(op: ComputeOp) -> None:
    op.properties["reads"] = ArrayAttr(op.reads.data[:1])


def _inputs(op: ComputeOp) -> None:
    op.operands = [op.operands[1], op.operands[0]]


def _argument(op: ComputeOp) -> None:
    op.body.block.args[0]._type = f64


def _operation(op: ComputeOp) -> None:
    product = op.body.block.first_op
    assert product is not None
    product.operands = [product.results[0], product.results[0]]


def _kind(op: ComputeOp) -> None:
    product = op.body.block.first_op
    assert product is not None
    second = MuliOp.create(operands=product.operands, result_types=[f32])
    second.properties = dict(product.properties)
    op.body.block.insert_op_before(second, product)
    product.results[0].replace_all_uses_with(second.results[0])
    product.detach()


@pytest.mark.parametrize("change", [_axes, _combiners, _reads, _inputs, _argument, _operation, _kind])
def test_a_compute_is_refused_though_one_like_it_was_verified(change: Callable[[ComputeOp], None]) -> None:
    op = _compute()
    before = signature(op)
    assert before is not None
    change(op)
    assert signature(op) != before
    module = op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    with pytest.raises(VerifyException):
        verify_module(module)


def test_labels_and_names_are_no_part_of_a_signature() -> None:
    assert signature(_compute("S")) == signature(_compute("T"))
