"""Normalisations, softmax, Hardmax."""

from __future__ import annotations

from compiler.frontends.onnx.operators.shape import axis_of
from compiler.frontends.onnx.table import Node, Refused, handler, handles, register
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

register(
    __name__,
    {
        "InstanceNormalization": handler(nn.instance_norm, tensors=3, epsilon=1e-5),
        "LogSoftmax": handler(nn.log_softmax, axis=-1),
        "LpNormalization": handler(nn.lp_normalize, p=2, axis=-1),
        "Softmax": handler(nn.softmax, axis=-1),
    },
)


@handles("Hardmax")
def hardmax(node: Node) -> Tensor:
    """1 at the first maximum along an axis, 0 at all other elements."""
    x = node.tensor(0)
    axis = axis_of(node, node.attribute("axis", -1), x.rank)
    top_index = nn.argmax(x, axis, keepdims=True, name=f"{node.name}.place")

    def element(*i: Index) -> Expr:
        row_index = top_index[tuple(0 if d == axis else index for d, index in enumerate(i))]
        return e.select(e.equal(e.cast(i[axis], "i64"), row_index), e.const(1.0, x.dtype), 0.0)

    return compute(x.shape, element, node.name)


@handles("BatchNormalization")
def batch_norm(node: Node) -> list[Tensor]:
    """Batch normalisation with the inputs mean and variance; in training mode with those of the batch, then also the
    updated running mean and variance."""
    x, gamma, beta, mean, variance = (node.tensor(position) for position in range(5))
    eps = node.attribute("epsilon", 1e-5)
    if not node.attribute("training_mode", 0):
        mean, variance, gamma, beta = (_cast_to(t, x.dtype) for t in (mean, variance, gamma, beta))
        return [nn.batch_norm(x, mean, variance, gamma, beta, eps, name=node.name)]
    momentum = node.attribute("momentum", 0.9)
    normalised, batch_mean, batch_variance = nn.batch_norm_training(
        x, _cast_to(gamma, x.dtype), _cast_to(beta, x.dtype), eps=eps, name=node.name
    )
    running = [
        nn.add(nn.mul(old, momentum), nn.mul(_cast_to(new, old.dtype), 1.0 - momentum))
        for old, new in ((mean, batch_mean), (variance, batch_variance))
    ]
    return [normalised, *running]


def _cast_to(x: Tensor, dtype: str) -> Tensor:
    return x if x.dtype == dtype else nn.cast(x, dtype)


@handles("GroupNormalization")
def group_norm(node: Node) -> Tensor:
    """Group normalisation; scale and bias have an element for each channel, or before opset 21 for each group."""
    x, gamma, beta = node.tensor(0), node.tensor(1), node.tensor(2)
    groups, eps = node.attribute("num_groups"), node.attribute("epsilon", 1e-5)
    if gamma.shape[0] != x.shape[1]:
        group_size = x.shape[1] // gamma.shape[0]
        gamma, beta = (nn.repeat(t, group_size, 0, f"{t.name}.repeated") for t in (gamma, beta))
    return nn.group_norm(x, groups, gamma, beta, eps, name=node.name)


@handles("LayerNormalization")
def layer_norm(node: Node) -> list[Tensor]:
    """Layer normalisation over the dimensions from an axis on; also mean and 1 / sqrt(variance + eps), in f32 or with
    `stash_type` 0 in x's dtype, if one of them is used. Raises Refused for a scale or bias that varies along a
    dimension that is not normalised."""
    x = node.tensor(0)
    axis, eps = axis_of(node, node.attribute("axis", -1), x.rank), node.attribute("epsilon", 1e-5)
    axes = tuple(range(axis, x.rank))
    gamma, beta = (_shaped(node, position, x, axes) for position in (1, 2))
    outputs = [nn.layer_norm(x, gamma, beta, eps, axes, name=node.name)]
    if not node.uses(1) and not node.uses(2):
        return outputs
    statistics_input = _cast_to(x, "f32") if node.attribute("stash_type", 1) == 1 else x
    mean = nn.mean(statistics_input, axes, keepdims=True, name=f"{node.name}.mean")
    square = nn.mean(nn.square(nn.sub(statistics_input, mean)), axes, keepdims=True)
    return [*outputs, mean, nn.rsqrt(nn.add(square, eps), name=f"{node.name}.inverse")]


@handles("RMSNormalization")
def rms_norm(node: Node) -> Tensor:
    """RMS normalisation over the dimensions from an axis on. Raises Refused for a scale that varies along another
    one."""
    x = node.tensor(0)
    axes = tuple(range(axis_of(node, node.attribute("axis", -1), x.rank), x.rank))
    return nn.rms_norm(x, _shaped(node, 1, x, axes), node.attribute("epsilon", 1e-5), axes, name=node.name)


def _shaped(node: Node, position: int, x: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """Return the input at a position, a scale or bias, broadcast to the extents of `axes` of x; None if it is omitted.
    Raises Refused if it varies along other dimensions or has more dimensions than x."""
    scale, extents = node.optional(position), tuple(x.shape[d] for d in axes)
    if scale is None or scale.shape == extents:
        return scale
    if any(n != 1 for n in scale.shape[: -len(extents)]) or scale.rank > x.rank:
        raise Refused("its scale varies along a dimension that is not normalised")
    if scale.rank != len(extents):
        scale = nn.reshape(scale, (*(1,) * (len(extents) - scale.rank), *scale.shape[-len(extents) :]))
    return nn.broadcast_to(scale, extents)


@handles("LRN")
def lrn(node: Node) -> Tensor:
    """x / (bias + alpha / size * sum of squares over `size` neighbouring channels)^beta."""
    length = node.attribute("size")
    alpha, beta, bias = (node.attribute(name, d) for name, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return nn.local_response_norm(node.tensor(0), length, alpha, beta, bias, (length - 1) // 2, name=node.name)
