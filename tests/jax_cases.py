"""Functions of jax.numpy, jax.lax and jax.nn, each with the kinds of its arguments, for the front end of JAX.

An argument is written as a kind and a shape: `f` floats in (-2, 2), `p` positive floats, `u` floats in (-1, 1), `i`
integers in [0, 4), `s` integers of both signs, `b` truth values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

_BITS = "stablehlo.bitcast_convert' reads the bits"
_OF_DATA = "stablehlo.while' runs as often as data decide"
REFUSED = {
    "jnp.signbit": _BITS,
    "jnp.copysign": _BITS,
    "jnp.nextafter": _BITS,
    "jnp.gcd": _OF_DATA,
    "lax.bitcast_convert_type": _BITS,
    "jax.random.uniform of a key": _BITS,
    "lax.while_loop of data": _OF_DATA,
    "jnp.linalg.cholesky": "stablehlo.custom_call .* @lapack_spotrf_ffi",
    "jnp.linalg.inv": "stablehlo.custom_call .* @lapack_sgetrf_ffi",
    "jnp.fft.fft": "stablehlo.fft",
    "complex": "stablehlo.convert' .* te has no elements of complex<f32>",
    "jax.pure_callback": "stablehlo.custom_call .*callback",
    "gradient of max_pool": "stablehlo.select_and_scatter' has no te form",
}
"""Map each case without a te form to the sentence."""


def cases() -> dict[str, tuple[Callable[..., Any], tuple[str, ...]]]:
    """The cases by name: a function, and its arguments."""
    import jax
    import jax.numpy as jnp
    from jax import lax, nn

    key = jax.random.key
    rows: list[tuple[str, Callable[..., Any], str]] = [
        *((f"jnp.{name}", getattr(jnp, name), "f4,5") for name in (
            "abs", "sign", "negative", "square", "exp", "expm1", "exp2", "sin", "cos", "tan", "sinh", "cosh", "tanh",
            "arctan", "arcsinh", "floor", "ceil", "trunc", "rint", "cbrt", "sinc", "isfinite", "isnan", "isinf",
            "nan_to_num", "deg2rad", "positive", "reciprocal", "i0", "logical_not", "signbit",
        )),
        *((f"jnp.{name}", getattr(jnp, name), "p4,5") for name in ("log", "log1p", "log2", "log10", "sqrt", "arccosh1")
          if hasattr(jnp, name)),
        *((f"jnp.{name}", getattr(jnp, name), "u4,5") for name in ("arcsin", "arccos", "arctanh")),
        *((f"jnp.{name}", getattr(jnp, name), "f4,5 f5") for name in (
            "add", "subtract", "multiply", "divide", "maximum", "minimum", "arctan2", "hypot", "logaddexp", "fmod",
            "mod", "floor_divide", "copysign", "heaviside", "equal", "less", "greater_equal", "nextafter",
        )),
        ("jnp.power", jnp.power, "p4,5 f5"),
        *((f"jnp.{name} of integers", getattr(jnp, name), "s4,5 i5") for name in (
            "add", "multiply", "maximum", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift",
        )),
        ("jnp.floor_divide of integers", lambda a: a // 3, "s4,5"),
        ("jnp.mod of integers", lambda a: a % -3, "s4,5"),
        ("jnp.gcd", jnp.gcd, "i4 i4"),
        ("jnp.invert", jnp.invert, "s4,5"),
        ("jnp.bitwise_count", jnp.bitwise_count, "s4,5"),
        ("lax.clz", lax.clz, "s4,5"),
        ("lax.population_count", lax.population_count, "s4,5"),
        ("lax.shift_right_logical", lambda a: lax.shift_right_logical(a, 2), "s4,5"),
        ("lax.integer_pow", lambda x: lax.integer_pow(x, 5), "f4,5"),
        ("lax.rsqrt", lax.rsqrt, "p4,5"),
        ("lax.erf_inv", lax.erf_inv, "u4,5"),
        ("lax.lgamma", lax.lgamma, "p4,5"),
        ("lax.digamma", lax.digamma, "p4,5"),
        ("lax.reduce_precision", lambda x: lax.reduce_precision(x, 8, 7), "f4,5"),
        ("lax.round", lambda x: lax.round(x * 4) / 2, "f4,5"),
        ("lax.bitcast_convert_type", lambda x: lax.bitcast_convert_type(x, jnp.int32), "f4,5"),
        *((f"jnp.{name}", lambda x, name=name: getattr(jnp, name)(x, axis=1), "f4,5") for name in (
            "sum", "mean", "max", "min", "prod", "var", "std", "argmax", "argmin", "any", "all", "cumsum", "cumprod",
            "ptp", "median", "sort", "argsort", "nanmean", "nansum", "count_nonzero", "average", "cummax",
        ) if hasattr(jnp, name)),
        ("jnp.argmax of integers", lambda x: jnp.argmax(x, axis=0), "i4,5"),
        ("jnp.quantile", lambda x: jnp.quantile(x, 0.25, axis=1), "f4,5"),
        ("jnp.percentile", lambda x: jnp.percentile(x, 30.0), "f20"),
        ("jnp.sum, all", jnp.sum, "f4,5"),
        ("jnp.any of truth values", lambda x: jnp.any(x, axis=0), "b4,5"),
        ("jnp.all of truth values", lambda x: jnp.all(x), "b4,5"),
        ("jnp.diff", lambda x: jnp.diff(x, axis=1), "f4,5"),
        ("jnp.trapezoid", lambda x: jnp.trapezoid(x, axis=1), "f4,5"),
        ("lax.cummax", lambda x: lax.cummax(x, axis=1), "f4,5"),
        ("lax.cumlogsumexp", lambda x: lax.cumlogsumexp(x, axis=1), "f4,5"),
        ("lax.associative_scan", lambda x: lax.associative_scan(jnp.add, x), "f7,3"),
        ("lax.reduce", lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)), "f4,5"),
        ("lax.reduce, joint", lambda x: lax.reduce(
            (x, x), (0.0, 1.0), lambda a, b: (a[0] + b[0], a[1] * b[1]), (1,)), "f4,5"),
        ("lax.reduce_xor", lambda x: lax.reduce_xor(x, (1,)), "i4,5"),
        ("lax.reduce_window", lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 2), ((1, 0), (2, 1))), "f6,7"),
        ("lax.reduce_window, dilated", lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (2, 2), (1, 1), "VALID", base_dilation=(2, 1), window_dilation=(1, 2)), "f5,6"),
        ("jnp.reshape", lambda x: x.reshape(2, 10), "f4,5"),
        ("jnp.ravel", jnp.ravel, "f4,5"),
        ("jnp.transpose", lambda x: jnp.transpose(x, (2, 0, 1)), "f2,3,4"),
        ("jnp.swapaxes", lambda x: jnp.swapaxes(x, 0, 1), "f2,3,4"),
        ("jnp.moveaxis", lambda x: jnp.moveaxis(x, 0, -1), "f2,3,4"),
        ("jnp.squeeze", lambda x: jnp.squeeze(x[:, None]), "f4,5"),
        ("jnp.expand_dims", lambda x: jnp.expand_dims(x, 1), "f4,5"),
        ("jnp.broadcast_to", lambda x: jnp.broadcast_to(x, (3, 4, 5)), "f4,5"),
        ("jnp.concatenate", lambda a, b: jnp.concatenate([a, b], 1), "f4,5 f4,2"),
        ("jnp.stack", lambda a, b: jnp.stack([a, b], 1), "f4,5 f4,5"),
        ("jnp.split", lambda x: jnp.split(x, 2, axis=0), "f4,5"),
        ("jnp.tile", lambda x: jnp.tile(x, (2, 3)), "f4,5"),
        ("jnp.repeat", lambda x: jnp.repeat(x, 3, axis=1), "f4,5"),
        ("jnp.flip", lambda x: jnp.flip(x, 0), "f4,5"),
        ("jnp.roll", lambda x: jnp.roll(x, 2, axis=1), "f4,5"),
        ("jnp.rot90", jnp.rot90, "f4,5"),
        ("jnp.pad", lambda x: jnp.pad(x, ((1, 2), (0, 3))), "f4,5"),
        ("jnp.pad, reflect", lambda x: jnp.pad(x, 2, mode="reflect"), "f4,5"),
        ("jnp.pad, edge", lambda x: jnp.pad(x, 1, mode="edge"), "f4,5"),
        ("lax.pad, interior", lambda x: lax.pad(x, 1.5, ((1, -1, 2), (-1, 2, 0))), "f4,5"),
        ("jnp.triu", jnp.triu, "f4,5"),
        ("jnp.tril", lambda x: jnp.tril(x, -1), "f5,5"),
        ("jnp.diag", jnp.diag, "f5,5"),
        ("jnp.diagonal", jnp.diagonal, "f4,5"),
        ("jnp.trace", jnp.trace, "f5,5"),
        ("jnp.meshgrid", lambda a, b: jnp.meshgrid(a, b), "f3 f4"),
        ("jnp.where", lambda c, a, b: jnp.where(c, a, b), "b4,5 f4,5 f5"),
        ("jnp.select", lambda x: jnp.select([x > 1, x < 0], [x, -x], 3.0), "f4,5"),
        ("jnp.clip", lambda x: jnp.clip(x, -1, 1), "f4,5"),
        ("jnp.clip of arrays", jnp.clip, "f4,5 u5 p5"),
        ("jnp.arange", lambda x: x + jnp.arange(5), "f4,5"),
        ("jnp.linspace", lambda x: x * jnp.linspace(0, 1, 5), "f4,5"),
        ("jnp.eye", lambda x: x @ jnp.eye(5), "f4,5"),
        ("jnp.vander", jnp.vander, "f4"),
        ("slices", lambda x: x[1:4:2, ::-1], "f4,5"),
        ("index", lambda x: x[2], "f4,5"),
        ("negative index", lambda x: x[-1, 1:], "f4,5"),
        ("index of an array", lambda x, i: x[i], "f4,5 i3"),
        ("index of arrays", lambda x, i: x[i, i], "f4,5 i3"),
        ("index along 1", lambda x, i: x[:, i], "f4,5 i2,3"),
        ("index of a scalar", lambda x, i: x[i], "f4,5 i"),
        ("jnp.take", lambda x, i: jnp.take(x, i, axis=1), "f4,5 i3"),
        ("jnp.take, clip", lambda x, i: jnp.take(x, i * 3, axis=0, mode="clip"), "f4,5 i3"),
        ("jnp.take, wrap", lambda x, i: jnp.take(x, i * 3, axis=0, mode="wrap"), "f4,5 i3"),
        ("jnp.take_along_axis", lambda x, i: jnp.take_along_axis(x, i, axis=1), "f4,5 i4,2"),
        ("lax.dynamic_slice", lambda x, i: lax.dynamic_slice(x, (i, 1), (2, 3)), "f4,5 i"),
        ("lax.dynamic_update_slice", lambda x, y, i: lax.dynamic_update_slice(x, y, (i, 1)), "f4,5 f2,3 i"),
        ("lax.dynamic_update_slice, constant", lambda x, y: lax.dynamic_update_slice(x, y, (9, 1)), "f4,5 f2,3"),
        ("x.at[i].set", lambda x, i: x.at[i].set(7.0), "f6,5 i3"),
        ("x.at[i].set of an array", lambda x, y, i: x.at[i].set(y), "f6,5 f5 i"),
        ("x.at[i].add", lambda x, y, i: x.at[i].add(y), "f6,5 f3,5 i3"),
        ("x.at[i, j].multiply", lambda x, i: x.at[i, i].multiply(3.0), "f6,5 i3"),
        ("x.at[:, i].max", lambda x, i: x.at[:, i].max(0.5), "f4,5 i3"),
        ("x.at[1:3].set", lambda x: x.at[1:3].set(0.0), "f4,5"),
        ("x.at[:, 2].add", lambda x: x.at[:, 2].add(1.0), "f4,5"),
        ("jax.ops.segment_sum", lambda x, i: jax.ops.segment_sum(x, i, 4), "f6,2 i6"),
        ("jnp.bincount", lambda i: jnp.bincount(i, length=5), "i9"),
        ("jnp.histogram", lambda x: jnp.histogram(x, 4, (-2.0, 2.0))[0], "f9"),
        ("jnp.searchsorted", lambda x, y: jnp.searchsorted(jnp.sort(x), y), "f9 f4"),
        ("jnp.unique", lambda x: jnp.unique(x, size=4), "i9"),
        ("jnp.nonzero", lambda x: jnp.nonzero(x, size=3), "f9"),
        ("jnp.interp", lambda x: jnp.interp(x, jnp.arange(4.0), jnp.arange(4.0) ** 2), "p6"),
        ("jnp.convolve", lambda a, b: jnp.convolve(a, b), "f9 f4"),
        ("jnp.polyval", lambda x: jnp.polyval(jnp.array([1.0, 2.0, 3.0]), x), "f4"),
        ("jnp.matmul", jnp.matmul, "f4,5 f5,3"),
        ("jnp.matmul, batched", jnp.matmul, "f2,4,5 f2,5,3"),
        ("jnp.matmul, broadcast", jnp.matmul, "f2,3,4,5 f5,3"),
        ("jnp.dot of vectors", jnp.dot, "f5 f5"),
        ("jnp.vdot", jnp.vdot, "f5 f5"),
        ("jnp.inner", jnp.inner, "f4,5 f3,5"),
        ("jnp.outer", jnp.outer, "f4 f5"),
        ("jnp.tensordot", lambda a, b: jnp.tensordot(a, b, 2), "f2,3,4 f3,4,5"),
        ("jnp.kron", jnp.kron, "f2,3 f3,2"),
        ("jnp.cross", jnp.cross, "f4,3 f4,3"),
        ("jnp.einsum, attention", lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), "f2,3,2,4 f2,5,2,4"),
        ("jnp.einsum, trace", lambda a: jnp.einsum("iij->j", a), "f3,3,4"),
        ("jnp.einsum, three", lambda a, b, c: jnp.einsum("ij,jk,kl->il", a, b, c), "f2,3 f3,4 f4,5"),
        ("jnp.matmul of integers", jnp.matmul, "i4,5 i5,3"),
        ("jnp.linalg.norm", jnp.linalg.norm, "f4,5"),
        ("jnp.linalg.matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), "f4,4"),
        ("jnp.linalg.cholesky", lambda x: jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(4)), "f4,4"),
        ("jnp.linalg.inv", jnp.linalg.inv, "f4,4"),
        ("jnp.fft.fft", lambda x: jnp.abs(jnp.fft.fft(x)), "f8"),
        ("lax.conv", lambda x, w: lax.conv(x, w, (2, 1), "SAME"), "f1,3,8,8 f4,3,3,3"),
        ("lax.conv, NHWC", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 2), ((1, 2), (0, 1)), dimension_numbers=("NHWC", "HWIO", "NHWC")), "f2,8,8,3 f3,3,3,4"),
        ("lax.conv, dilated", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "VALID", rhs_dilation=(2, 2)), "f1,2,9,9 f3,2,3,3"),
        ("lax.conv, groups", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", feature_group_count=2), "f1,4,6,6 f6,2,3,3"),
        ("lax.conv, depthwise", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", feature_group_count=4), "f1,4,6,6 f4,1,3,3"),
        ("lax.conv, batch groups", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", batch_group_count=2), "f4,3,6,6 f6,3,3,3"),
        ("lax.conv_transpose", lambda x, w: lax.conv_transpose(
            x, w, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")), "f1,4,4,2 f3,3,2,3"),
        ("lax.conv, one dimension", lambda x, w: lax.conv_general_dilated(x, w, (1,), "SAME"), "f2,3,9 f4,3,3"),
        ("lax.conv, three dimensions", lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1, 1), "SAME"), "f1,2,4,4,4 f3,2,3,3,3"),
        ("gradient of a convolution", jax.grad(lambda w, x: jnp.sum(lax.conv(x, w, (2, 2), "SAME") ** 2)),
         "f4,3,3,3 f1,3,8,8"),
        ("gradient of max_pool", jax.grad(lambda x: jnp.sum(lax.reduce_window(
            x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID") ** 2)), "f6,6"),
        ("gradient of a softmax", jax.grad(lambda x: jnp.sum(nn.log_softmax(x)[:, 0])), "f4,5"),
        ("jax.vmap", jax.vmap(lambda x, i: x[i]), "f4,5 i4"),
        ("jax.jit, nested", jax.jit(lambda x: jax.jit(jnp.sin)(x) + jax.jit(jnp.cos)(x)), "f4,5"),
        ("jax.checkpoint", jax.checkpoint(lambda x: jnp.sin(x) * 2), "f4,5"),
        ("lax.fori_loop", lambda x: lax.fori_loop(0, 5, lambda i, a: a * 0.5 + i, x), "f4,5"),
        ("lax.scan", lambda x: lax.scan(lambda c, a: (c * 0.5 + a, c), jnp.zeros(5), x), "f4,5"),
        ("lax.map", lambda x: lax.map(lambda a: a * 2 + 1, x), "f4,5"),
        ("lax.while_loop of data", lambda x: lax.while_loop(lambda a: jnp.sum(a) < 9, lambda a: a + 1, x), "f4,5"),
        ("lax.cond", lambda p, x: lax.cond(p, lambda a: a + 1, lambda a: a * 2, x), "b f4,5"),
        ("lax.switch", lambda i, x: lax.switch(i, [lambda a: a + 1, lambda a: a * 2, lambda a: -a], x), "i f4,5"),
        ("lax.top_k", lambda x: lax.top_k(x, 3), "f4,5"),
        ("lax.sort of two", lambda x, y: lax.sort((x, y), num_keys=1), "i9 f9"),
        ("lax.optimization_barrier", lambda x: lax.optimization_barrier(x) + 1, "f4,5"),
        ("jax.random.normal", lambda x: x + jax.random.normal(key(3), (4, 5)), "f4,5"),
        ("jax.random.uniform of a key", lambda k: jax.random.uniform(jax.random.wrap_key_data(
            k.astype(jnp.uint32)), (3,)), "i2"),
        ("jax.random.bits of a key", lambda k: jax.random.bits(jax.random.wrap_key_data(
            k.astype(jnp.uint32)), (3,)), "i2"),
        *((f"nn.{name}", getattr(nn, name), "f4,5") for name in (
            "relu", "relu6", "sigmoid", "softplus", "silu", "swish", "log_sigmoid", "leaky_relu", "hard_sigmoid",
            "hard_swish", "hard_tanh", "elu", "celu", "selu", "gelu", "glu4", "soft_sign", "mish", "softmax",
            "log_softmax", "logsumexp", "standardize", "squareplus", "sparse_plus",
        ) if hasattr(nn, name)),
        ("nn.gelu, exact", lambda x: nn.gelu(x, approximate=False), "f4,5"),
        ("nn.glu", nn.glu, "f4,6"),
        ("nn.one_hot", lambda i: nn.one_hot(i, 4), "i6"),
        ("nn.dot_product_attention", lambda q, k, v: nn.dot_product_attention(q, k, v, is_causal=True),
         "f1,4,2,8 f1,4,2,8 f1,4,2,8"),
        ("jax.scipy.special.erf", jax.scipy.special.erf, "f4,5"),
        ("jax.scipy.special.erfc", jax.scipy.special.erfc, "f4,5"),
        ("jax.scipy.special.xlogy", jax.scipy.special.xlogy, "p4,5 p5"),
        ("jax.scipy.stats.norm.logpdf", jax.scipy.stats.norm.logpdf, "f4,5"),
        ("jax.image.resize", lambda x: jax.image.resize(x, (8, 8), "bilinear"), "f4,4"),
        ("astype", lambda x: (x * 50).astype(jnp.int8).astype(jnp.float32), "f4,5"),
        ("bfloat16", lambda x: (x.astype(jnp.bfloat16) @ x.T.astype(jnp.bfloat16)).astype(jnp.float32), "f4,5"),
        ("float16", lambda x: jnp.exp(x.astype(jnp.float16)).astype(jnp.float32), "f4,5"),
        ("complex", lambda x: jnp.abs(x + 1j), "f4,5"),
        ("an LSTM by lax.scan", _lstm, "f4,2,3 f3,20 f5,20 f20"),
        ("rotary embeddings", _rotary, "f2,6,3,8"),
        ("a mixture of experts", _experts, "f5,6 f6,4 f4,6,7"),
        ("a cache of keys", lambda c, k, i: jnp.where(
            (jnp.arange(6) <= i)[:, None], lax.dynamic_update_slice(c, k, (i, 0)), 0).sum(0), "f6,4 f1,4 i"),
        ("group norm", lambda x: nn.standardize(x.reshape(2, 4, 4, 2, 4), axis=(1, 2, 4)), "f2,4,4,8"),
        ("a mean over windows, SAME", lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (2, 2), "SAME")
         / lax.reduce_window(jnp.ones_like(x), 0.0, lax.add, (3, 3), (2, 2), "SAME"), "f7,7"),
        ("jax.vmap of a convolution", jax.vmap(lambda x, k: lax.conv(x[None], k, (1, 1), "SAME")[0]),
         "f2,3,6,6 f2,4,3,3,3"),
        ("jax.vmap of a dynamic slice", jax.vmap(lambda x, i: lax.dynamic_slice(x, (i,), (3,))), "f4,9 i4"),
        ("jax.vmap of a write", jax.vmap(lambda x, i: x.at[i].set(1.0)), "f4,9 i4"),
        ("jax.vmap of a switch", jax.vmap(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x)), "i6 f6"),
        ("x.at[i].get, fill", lambda x, i: x.at[i * 3].get(mode="fill", fill_value=-1.0), "f4,6 i5"),
        ("x[ix_]", lambda x, i, j: x[jnp.ix_(i, j)], "f5,6 i2 i3"),
        ("jax.ops.segment_max", lambda x, i: jax.ops.segment_max(x, i, 5), "f9 i9"),
        ("jnp.lexsort", lambda x, y: jnp.lexsort((x, y)), "i9 i9"),
        ("jnp.nanmax", lambda x: jnp.nanmax(jnp.where(x > 1, jnp.nan, x), axis=1), "f4,6"),
        ("jnp.delete", lambda x: jnp.delete(x, 1), "f4"),
        ("jnp.unpackbits", lambda i: jnp.unpackbits(i.astype(jnp.uint8)), "i3"),
        ("jnp.divmod of integers", lambda i: jnp.divmod(i, -4), "s6"),
        ("jnp.cov", jnp.cov, "f3,8"),
        ("jnp.linalg.det", jnp.linalg.det, "f3,3"),
        ("jax.scipy.special.gammaln", jax.scipy.special.gammaln, "p4"),
        ("jax.scipy.special.i1e", jax.scipy.special.i1e, "f4"),
        ("jax.scipy.ndimage.map_coordinates", lambda x, c: jax.scipy.ndimage.map_coordinates(x, [c, c], order=1),
         "f6,6 p5"),
        ("jax.random.permutation", lambda x: jax.random.permutation(key(1), x), "f6"),
        ("jax.random.categorical", lambda x: jax.random.categorical(key(1), x), "f3,6"),
        ("lax.conv, its own transpose", lambda x, k: jax.vjp(
            lambda x: lax.conv(x, k, (2, 2), "SAME"), x)[1](jnp.ones((1, 3, 4, 4)))[0], "f1,2,8,8 f3,2,3,3"),
        ("lax.conv, cropped", lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), [(2, 2), (-1, 0)], rhs_dilation=(2, 1), dimension_numbers=("NHWC", "OIHW", "NCHW")),
         "f1,7,8,2 f3,2,3,2"),
        ("lax.conv_general_dilated_patches", lambda x: lax.conv_general_dilated_patches(x, (2, 2), (2, 2), "VALID"),
         "f1,2,6,6"),
        ("a product of bfloat16 to float32", lambda a, b: lax.dot_general(
            a.astype(jnp.bfloat16), b.astype(jnp.bfloat16), (((1,), (0,)), ((), ())),
            preferred_element_type=jnp.float32), "f4,5 f5,3"),
        ("a product of int8 to int32", lambda a, b: lax.dot_general(
            a.astype(jnp.int8), b.astype(jnp.int8), (((1,), (0,)), ((), ())), preferred_element_type=jnp.int32),
         "s4,5 s5,3"),
        ("lax.scan, reverse", lambda x: lax.scan(lambda c, a: (c * 0.9 + a, c), 0.0, x, reverse=True), "f6"),
        ("loops in loops", lambda x: lax.scan(
            lambda c, a: (lax.fori_loop(0, 3, lambda i, t: t + a, c), c), 0.0, x), "f6"),
        ("lax.while_loop of a counter", lambda x: lax.while_loop(
            lambda s: s[0] < 5, lambda s: (s[0] + 2, s[1] * 2), (0, x)), "f6"),
        ("jax.pure_callback", lambda x: jax.pure_callback(lambda a: a, jax.ShapeDtypeStruct((6,), jnp.float32), x),
         "f6"),
        ("arguments as results", lambda x, y: (y, x), "f6 f2"),
        ("an argument that is not read", lambda x, y: x * 2, "f6 f2"),
        ("a result twice", lambda x: (x * 2,) * 2, "f6"),
        ("a constant as a result", lambda x: (jnp.arange(4), x), "f6"),
        ("a scalar", lambda x: jnp.sin(x) * 2, "f"),
        ("trees", lambda x: {"b": x + 1, "a": (x * 2, [x])}, "f4,5"),
    ]  # fmt: skip
    return {name: (function, tuple(arguments.split())) for name, function, arguments in rows}


def _lstm(x: Any, w: Any, u: Any, b: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax, nn

    def step(state: Any, row: Any) -> Any:
        h, c = state
        i, f, g, o = jnp.split(row @ w + h @ u + b, 4, -1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((x.shape[1], u.shape[0]))
    return lax.scan(step, (zeros, zeros), x)


def _rotary(x: Any) -> Any:
    import jax.numpy as jnp

    angles = jnp.arange(x.shape[1])[:, None] / 10000 ** (jnp.arange(0, x.shape[-1], 2) / x.shape[-1])
    cos, sin = jnp.cos(angles)[:, None], jnp.sin(angles)[:, None]
    a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(x.shape)


def _experts(x: Any, gate: Any, experts: Any) -> Any:
    import jax.numpy as jnp
    from jax import lax, nn

    weights, places = lax.top_k(nn.softmax(x @ gate), 2)
    chosen = (nn.one_hot(places, gate.shape[1]) * weights[..., None]).sum(1)
    return jnp.einsum("tef,te->tf", jnp.einsum("td,edf->tef", x, experts), chosen)


_KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "f": lambda rng, shape: rng.uniform(-2, 2, shape).astype(np.float32),
    "p": lambda rng, shape: rng.uniform(0.1, 3, shape).astype(np.float32),
    "u": lambda rng, shape: rng.uniform(-0.95, 0.95, shape).astype(np.float32),
    "i": lambda rng, shape: rng.integers(0, 4, shape).astype(np.int32),
    "s": lambda rng, shape: rng.integers(-100, 100, shape).astype(np.int32),
    "b": lambda rng, shape: rng.integers(0, 2, shape).astype(bool),
}


def arrays(kinds: tuple[str, ...]) -> list[Any]:
    """An array for each argument of a case."""
    rng = np.random.default_rng(0)
    return [np.asarray(_KINDS[text[0]](rng, tuple(int(n) for n in text[1:].split(",") if n))) for text in kinds]
