"""The operator squared_relu."""

from __future__ import annotations

from strata import te


def squared_relu(x: te.Tensor, name: str = "squared_relu") -> te.Tensor:
    """The square of relu, elementwise, as in Primer (So et al., 2021)."""
    positive = te.nn.relu(x)
    return te.compute(x.shape, lambda *i: positive[i] * positive[i], name=name)
