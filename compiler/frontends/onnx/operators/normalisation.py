"""Norms, and softmax."""

from __future__ import annotations

from compiler.frontends.onnx.table import Node, Refused, enter, handles, plain
from compiler.te import nn
from compiler.te import scalar as e
from compiler.te.compute import compute
from compiler.te.expr import Expr
from compiler.te.index import Index
from compiler.te.tensor import Tensor

enter(
    __name__,
    {
        "InstanceNormalization": plain(nn.instance_norm, tensors=3, epsilon=1e-5),
        "LogSoftmax": plain(nn.log_softmax, axis=-1),
        "LpNormalization": plain(nn.lp_normalize, p=2, axis=-1),
        "Softmax": plain(nn.softmax, axis=-1),
    },
)


@handles("Hardmax")
def hardmax(node: Node) -> Tensor:
    """1 at the first maximum along an axis, 0 elsewhere."""
    x = node.tensor(0)
    axis = node.attribute("axis", -1) % x.rank
    place = nn.argmax(x, axis, keepdims=True, name=f"{node.name}.place")

    def element(*i: Index) -> Expr:
        at = place[tuple(0 if d == axis else index for d, index in enumerate(i))]
        return e.select(e.equal(e.cast(i[axis], "i64"), at), e.const(1.0, x.dtype), 0.0)

    return compute(x.shape, element, node.name)


@handles("BatchNormalization")
def batch_norm(node: Node) -> list[Tensor]:
    """The norm of each channel, with statistics that are given; in training mode with its own, which are mixed in."""
    x, gamma, beta, mean, variance = (node.tensor(position) for position in range(5))
    eps = node.attribute("epsilon", 1e-5)
    if not node.attribute("training_mode", 0):
        mean, variance, gamma, beta = (_as(t, x.dtype) for t in (mean, variance, gamma, beta))
        return [nn.batch_norm(x, mean, variance, gamma, beta, eps, name=node.name)]
    momentum = node.attribute("momentum", 0.9)
    normed, batch_mean, spread = nn.batch_norm_training(
        x, _as(gamma, x.dtype), _as(beta, x.dtype), eps=eps, name=node.name
    )
    mixed = [
        nn.add(nn.mul(old, momentum), nn.mul(_as(new, old.dtype), 1.0 - momentum))
        for old, new in ((mean, batch_mean), (variance, spread))
    ]
    return [normed, *mixed]


def _as(x: Tensor, dtype: str) -> Tensor:
    return x if x.dtype == dtype else nn.cast(x, dtype)


@handles("GroupNormalization")
def group_norm(node: Node) -> Tensor:
    """The norm of each group of channels of each image; before opset 21 a scale for each group."""
    x, gamma, beta = node.tensor(0), node.tensor(1), node.tensor(2)
    groups, eps = node.attribute("num_groups"), node.attribute("epsilon", 1e-5)
    if gamma.shape[0] != x.shape[1]:
        share = x.shape[1] // gamma.shape[0]
        gamma, beta = (nn.repeat(t, share, 0, f"{t.name}.repeated") for t in (gamma, beta))
    return nn.group_norm(x, groups, gamma, beta, eps, name=node.name)


@handles("LayerNormalization")
def layer_norm(node: Node) -> list[Tensor]:
    """The norm over the dimensions from an axis on; the mean and the inverse deviation where they are used."""
    x = node.tensor(0)
    axis, eps = node.attribute("axis", -1) % x.rank, node.attribute("epsilon", 1e-5)
    axes = tuple(range(axis, x.rank))
    gamma, beta = (_shaped(node, position, x, axes) for position in (1, 2))
    outputs = [nn.layer_norm(x, gamma, beta, eps, axes, name=node.name)]
    if not node.uses(1) and not node.uses(2):
        return outputs
    wide = _as(x, "f32") if node.attribute("stash_type", 1) == 1 else x
    mean = nn.mean(wide, axes, keepdims=True, name=f"{node.name}.mean")
    square = nn.mean(nn.square(nn.sub(wide, mean)), axes, keepdims=True)
    return [*outputs, mean, nn.rsqrt(nn.add(square, eps), name=f"{node.name}.inverse")]


@handles("RMSNormalization")
def rms_norm(node: Node) -> Tensor:
    """The norm by the root of the mean square, over the dimensions from an axis on."""
    x = node.tensor(0)
    axes = tuple(range(node.attribute("axis", -1) % x.rank, x.rank))
    return nn.rms_norm(x, _shaped(node, 1, x, axes), node.attribute("epsilon", 1e-5), axes, name=node.name)


def _shaped(node: Node, position: int, x: Tensor, axes: tuple[int, ...]) -> Tensor | None:
    """A scale or bias with the extents of the axes. Raises Refused where it varies along others."""
    given, wanted = node.optional(position), tuple(x.shape[d] for d in axes)
    if given is None or given.shape == wanted:
        return given
    if any(n != 1 for n in given.shape[: -len(wanted)]) or given.rank > x.rank:
        raise Refused("its scale varies along a dimension that is not normalised")
    if given.rank != len(wanted):
        given = nn.reshape(given, (*(1,) * (len(wanted) - given.rank), *given.shape[-len(wanted) :]))
    return nn.broadcast_to(given, wanted)


@handles("LRN")
def lrn(node: Node) -> Tensor:
    """Divided by a power of the squares of neighbouring channels."""
    length = node.attribute("size")
    alpha, beta, bias = (node.attribute(name, d) for name, d in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1.0)))
    return nn.local_response_norm(node.tensor(0), length, alpha, beta, bias, (length - 1) // 2, name=node.name)
