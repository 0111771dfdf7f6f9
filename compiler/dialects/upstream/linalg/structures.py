"""`STRUCTURES`: the table of MLIR's named linalg ops with fixed ranks; `POINTWISE`: those of any rank.

A row's text has a map for each operand, `inputs -> output`, with a `;` between inputs. A word is a dimension of the
iteration space; `h~kh` is `h * stride + kh * dilation`, a window dimension. A scalar input has an empty map.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.ir.affine import AffineExpr, AffineMap


@dataclass(frozen=True)
class NamedStructure:
    """A row of the table of named ops: the indexing maps as text, and the name of the scalar body in BODIES.

    >>> matmul = NamedStructure("m,k; k,n -> m,n", "mul_add")
    >>> [str(map) for map in matmul.maps((), ())]
    ['(d0, d1, d2) -> (d0, d2)', '(d0, d1, d2) -> (d2, d1)', '(d0, d1, d2) -> (d0, d1)']
    """

    text: str
    body: str

    @cached_property
    def operands(self) -> list[list[str]]:
        """The terms of each operand's map, the output's last."""
        inputs, _, output = self.text.partition("->")
        return [[term.strip() for term in map.split(",") if term.strip()] for map in (*inputs.split(";"), output)]

    @cached_property
    def dims(self) -> list[str]:
        """The dimensions of the iteration space: those of the output, then the reductions, those of the last input
        first, in their order in it."""
        ordered = dict.fromkeys(self.operands[-1])
        for terms in reversed(self.operands[:-1]):
            for term in terms:
                ordered |= dict.fromkeys(term.split("~"))
        return list(ordered)

    @property
    def parallel(self) -> int:
        """The number of parallel dimensions, which are the first."""
        return len(self.operands[-1])

    @property
    def windows(self) -> int:
        """The number of window dimensions, each with a stride and a dilation."""
        return sum("~" in term for terms in self.operands for term in terms)

    def maps(self, strides: Sequence[int], dilations: Sequence[int]) -> list[AffineMap]:
        """The map of each operand to its indices; `strides` and `dilations` have an entry for each window dimension, in
        the order of the text, and must have no fewer."""
        factors = iter(zip(strides, dilations, strict=True))

        def expression(term: str) -> AffineExpr:
            outer, window, inner = term.partition("~")
            expr = AffineExpr.dimension(self.dims.index(outer))
            if not window:
                return expr
            stride, dilation = next(factors)
            return expr * stride + AffineExpr.dimension(self.dims.index(inner)) * dilation

        return [AffineMap(len(self.dims), 0, tuple(map(expression, terms))) for terms in self.operands]


_PRODUCTS = {
    "matmul": "m,k; k,n -> m,n",
    "matmul_transpose_a": "k,m; k,n -> m,n",
    "matmul_transpose_b": "m,k; n,k -> m,n",
    "batch_matmul": "b,m,k; b,k,n -> b,m,n",
    "batch_matmul_transpose_a": "b,k,m; b,k,n -> b,m,n",
    "batch_matmul_transpose_b": "b,m,k; b,n,k -> b,m,n",
    "batch_reduce_matmul": "b,m,k; b,k,n -> m,n",
    "matvec": "m,k; k -> m",
    "vecmat": "k; k,n -> n",
    "batch_matvec": "b,m,k; b,k -> b,m",
    "batch_vecmat": "b,k; b,k,n -> b,n",
    "dot": "k; k ->",
    "mmt4d": "m,k,m0,k0; n,k,n0,k0 -> m,n,m0,n0",
    "batch_mmt4d": "b,m,k,m0,k0; b,n,k,n0,k0 -> b,m,n,m0,n0",
    "conv_1d": "w~kw; kw -> w",
    "conv_2d": "h~kh,w~kw; kh,kw -> h,w",
    "conv_3d": "d~kd,h~kh,w~kw; kd,kh,kw -> d,h,w",
    "conv_1d_nwc_wcf": "n,w~kw,c; kw,c,f -> n,w,f",
    "conv_1d_ncw_fcw": "n,c,w~kw; f,c,kw -> n,f,w",
    "conv_2d_nhwc_hwcf": "n,h~kh,w~kw,c; kh,kw,c,f -> n,h,w,f",
    "conv_2d_nhwc_fhwc": "n,h~kh,w~kw,c; f,kh,kw,c -> n,h,w,f",
    "conv_2d_nchw_fchw": "n,c,h~kh,w~kw; f,c,kh,kw -> n,f,h,w",
    "conv_2d_ngchw_fgchw": "n,g,c,h~kh,w~kw; f,g,c,kh,kw -> n,g,f,h,w",
    "conv_2d_ngchw_gfchw": "n,g,c,h~kh,w~kw; g,f,c,kh,kw -> n,g,f,h,w",
    "conv_2d_nhwgc_gfhwc": "n,h~kh,w~kw,g,c; g,f,kh,kw,c -> n,h,w,g,f",
    "conv_3d_ndhwc_dhwcf": "n,d~kd,h~kh,w~kw,c; kd,kh,kw,c,f -> n,d,h,w,f",
    "conv_3d_ncdhw_fcdhw": "n,c,d~kd,h~kh,w~kw; f,c,kd,kh,kw -> n,f,d,h,w",
    "depthwise_conv_1d_nwc_wc": "n,w~kw,c; kw,c -> n,w,c",
    "depthwise_conv_1d_ncw_cw": "n,c,w~kw; c,kw -> n,c,w",
    "depthwise_conv_1d_nwc_wcm": "n,w~kw,c; kw,c,m -> n,w,c,m",
    "depthwise_conv_2d_nhwc_hwc": "n,h~kh,w~kw,c; kh,kw,c -> n,h,w,c",
    "depthwise_conv_2d_nchw_chw": "n,c,h~kh,w~kw; c,kh,kw -> n,c,h,w",
    "depthwise_conv_2d_nhwc_hwcm": "n,h~kh,w~kw,c; kh,kw,c,m -> n,h,w,c,m",
    "depthwise_conv_3d_ndhwc_dhwc": "n,d~kd,h~kh,w~kw,c; kd,kh,kw,c -> n,d,h,w,c",
    "depthwise_conv_3d_ncdhw_cdhw": "n,c,d~kd,h~kh,w~kw; c,kd,kh,kw -> n,c,d,h,w",
    "depthwise_conv_3d_ndhwc_dhwcm": "n,d~kd,h~kh,w~kw,c; kd,kh,kw,c,m -> n,d,h,w,c,m",
}
"""Sums of products of two operands."""

_QUANTIZED = {
    "quantized_matmul": "matmul",
    "quantized_batch_matmul": "batch_matmul",
    "conv_2d_nhwc_hwcf_q": "conv_2d_nhwc_hwcf",
    "conv_2d_nhwc_fhwc_q": "conv_2d_nhwc_fhwc",
    "conv_2d_nchw_fchw_q": "conv_2d_nchw_fchw",
    "conv_2d_ngchw_gfchw_q": "conv_2d_ngchw_gfchw",
    "conv_2d_nhwgc_gfhwc_q": "conv_2d_nhwgc_gfhwc",
    "conv_3d_ndhwc_dhwcf_q": "conv_3d_ndhwc_dhwcf",
    "depthwise_conv_2d_nhwc_hwc_q": "depthwise_conv_2d_nhwc_hwc",
    "depthwise_conv_2d_nhwc_hwcm_q": "depthwise_conv_2d_nhwc_hwcm",
}
"""Map each quantized product, which has two zero points after its operands, to the product without them."""

_POOLED = {
    "nhwc": ("n,h~kh,w~kw,c; kh,kw -> n,h,w,c", "sum max max_unsigned min min_unsigned"),
    "nchw": ("n,c,h~kh,w~kw; kh,kw -> n,c,h,w", "sum max"),
    "nwc": ("n,w~kw,c; kw -> n,w,c", "sum max max_unsigned min min_unsigned"),
    "ncw": ("n,c,w~kw; kw -> n,c,w", "sum max"),
    "ndhwc": ("n,d~kd,h~kh,w~kw,c; kd,kh,kw -> n,d,h,w,c", "sum max min"),
}
"""Map each layout of pooling to its maps, and the kinds that MLIR has; the second input is the window's shape only."""

POINTWISE = {
    **dict.fromkeys(("exp", "log", "abs", "ceil", "floor", "negf", "reciprocal", "round"), 1),
    **dict.fromkeys(("sqrt", "rsqrt", "square", "tanh", "erf", "copy"), 1),
    **dict.fromkeys(("add", "sub", "mul", "div", "div_unsigned", "max", "min", "powf"), 2),
    "select": 3,
}
"""Map each elementwise named op to its number of inputs; its name is that of its scalar body."""

KINDS = {
    **{name: name for name in POINTWISE if name not in ("max", "min", "copy")},
    "max_signed": "max",
    "min_signed": "min",
    "max_unsigned": "max_unsigned",
    "min_unsigned": "min_unsigned",
}
"""Map each kind of linalg.elementwise to its scalar body."""

STRUCTURES = {
    **{name: NamedStructure(text, "mul_add") for name, text in _PRODUCTS.items()},
    **{
        name: NamedStructure(_PRODUCTS[plain].replace(" ->", "; ; ->"), "mul_add_shifted")
        for name, plain in _QUANTIZED.items()
    },
    **{
        f"pooling_{layout}_{kind}": NamedStructure(text, f"pool_{kind}")
        for layout, (text, kinds) in _POOLED.items()
        for kind in kinds.split()
    },
}
"""Map each named op of fixed ranks to its structure."""
