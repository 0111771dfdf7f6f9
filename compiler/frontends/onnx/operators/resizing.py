"""Resize, Upsample, GridSample."""

from __future__ import annotations

from compiler.frontends.onnx.operators.shape import axis_of
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te.tensor import Tensor


@handles("Resize")
def resize(node: Node) -> Tensor:
    """Resize axes, by default all, to constant sizes or by constant scales; a keep_aspect_ratio_policy other than
    stretch makes one scale of the sizes. Raises Refused without either, and for sizes, scales or a region that the
    model computes."""
    x = node.tensor(0)
    axes = [axis_of(node, axis, x.rank) for axis in node.attribute("axes") or range(x.rank)]
    roi = [float(n) for n in node.constant(1, "the region").reshape(-1)] if node.has(1) else []
    scales = [float(n) for n in node.constant(2, "the scales").reshape(-1)] if node.has(2) else []
    sizes = node.integers(3, "the sizes") if node.has(3) else []
    policy = node.attribute("keep_aspect_ratio_policy", "stretch")
    if sizes and policy != "stretch":
        ratios = [size / x.shape[d] for d, size in zip(axes, sizes, strict=True)]
        ratio = min(ratios) if policy == "not_larger" else max(ratios)
        sizes, scales = [int(ratio * x.shape[d] + 0.5) for d in axes], [ratio] * len(axes)
    if not sizes and not scales:
        raise Refused("neither its sizes nor its scales are given")
    return nn.resize(
        x,
        sizes or None,
        scales or None,
        axes,
        node.attribute("mode", "nearest"),
        node.attribute("coordinate_transformation_mode", "half_pixel"),
        node.attribute("nearest_mode", "round_prefer_floor"),
        node.attribute("cubic_coeff_a", -0.75),
        bool(node.attribute("exclude_outside", 0)),
        bool(node.attribute("antialias", 0)),
        roi or None,
        node.attribute("extrapolation_value", 0.0),
        name=node.name,
    )


@handles("Upsample")
def upsample(node: Node) -> Tensor:
    """Resize by scales as before opset 11: asymmetric coordinates; nearest rounds down, or up for scales below 1.
    Raises Refused for scales that the model computes."""
    resized, mode = node.tensor(0), node.attribute("mode", "nearest")
    scales = [float(n) for n in node.constant(1, "the scales").reshape(-1)]
    for rounding in ("floor", "ceil"):
        axes = [d for d, scale in enumerate(scales) if scale != 1 and (scale < 1) == (rounding == "ceil")]
        if axes:
            axis_scales = [scales[d] for d in axes]
            options = (mode, "asymmetric", rounding)
            resized = nn.resize(resized, None, axis_scales, axes, *options, name=node.name)
    return resized


@handles("GridSample")
def grid_sample(node: Node) -> Tensor:
    """Sample images at the normalised coordinates in a grid, as nn.grid_sample."""
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(given := node.attribute("mode", "linear"), given)
    padding, corners = node.attribute("padding_mode", "zeros"), bool(node.attribute("align_corners", 0))
    return nn.grid_sample(node.tensor(0), node.tensor(1), mode, padding, corners, name=node.name)
