"""The ops of StableHLO and CHLO by name: their properties, and what the pretty syntax calls them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UNARY = (
    "abs", "cbrt", "ceil", "cosine", "count_leading_zeros", "exponential", "exponential_minus_one", "floor",
    "is_finite", "log", "log_plus_one", "logistic", "negate", "not", "popcnt", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "sign", "sine", "sqrt", "tan", "tanh",
)  # fmt: skip
"""Functions of one operand."""
BINARY = (
    "add", "and", "atan2", "divide", "maximum", "minimum", "multiply", "or", "power", "remainder", "shift_left",
    "shift_right_arithmetic", "shift_right_logical", "subtract", "xor",
)  # fmt: skip
"""Functions of two operands."""
CHLO = (
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "erf", "erf_inv", "erfc", "is_inf", "sinh", "square",
    "tan", "top_k", "lgamma", "digamma", "bessel_i1e", "next_after", "zeta", "polygamma",
)  # fmt: skip
"""Ops of CHLO: functions of elements that StableHLO lacks, and top_k."""
OF_TWO = ("next_after", "zeta", "polygamma")
"""The ops of CHLO that have two operands."""


@dataclass(frozen=True)
class SyntaxRow:
    """The syntax of an op beside its operands. words: map the words of the pretty syntax, `word = value`, to
    properties; an empty name is a word that is dropped. leading: properties whose values, without a word, come before
    or after the operands. more: properties of the generic syntax only. operands: their number; None if it varies."""

    words: Mapping[str, str] = field(default_factory=dict)
    leading: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    operands: int | None = None

    @property
    def properties(self) -> list[str]:
        """The names of all properties."""
        return [name for name in {*self.words.values(), *self.leading, *self.more} if name]


_PAD = {"low": "edge_padding_low", "high": "edge_padding_high", "interior": "interior_padding"}
_DOT = {"batching_dims": "batching", "contracting_dims": "contracting", "precision": "precision_config"}
_WINDOW = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
_CONVOLUTION = (
    "dimension_numbers", "window_strides", "padding", "lhs_dilation", "rhs_dilation", "window_reversal",
    "feature_group_count", "batch_group_count", "precision_config",
)  # fmt: skip
_SCATTER = ("scatter_dimension_numbers", "indices_are_sorted", "unique_indices")

ROWS: dict[str, SyntaxRow] = {
    **{name: SyntaxRow(more=("result_accuracy",), operands=1) for name in UNARY},
    **{name: SyntaxRow(more=("result_accuracy",), operands=2) for name in BINARY},
    **{name: SyntaxRow(operands=1) for name in ("convert", "bitcast_convert", "reshape")},
    **{name: SyntaxRow(operands=3) for name in ("clamp", "select")},
    "dot": SyntaxRow(operands=2),
    "return": SyntaxRow(),
    "batch_norm_inference": SyntaxRow(more=("epsilon", "feature_index")),
    "broadcast_in_dim": SyntaxRow({"dims": "broadcast_dimensions"}),
    "broadcast": SyntaxRow({"sizes": "broadcast_sizes"}),
    "case": SyntaxRow(),
    "compare": SyntaxRow(leading=("comparison_direction", "compare_type"), operands=2),
    "composite": SyntaxRow(more=("name", "composite_attributes", "decomposition", "version")),
    "concatenate": SyntaxRow({"dim": "dimension"}),
    "constant": SyntaxRow(more=("value",)),
    "convolution": SyntaxRow(more=_CONVOLUTION),
    "custom_call": SyntaxRow(more=("call_target_name", "has_side_effect", "backend_config", "api_version")),
    "dot_general": SyntaxRow(_DOT | {"algorithm": "algorithm"}, more=("dot_dimension_numbers",)),
    "dynamic_slice": SyntaxRow({"sizes": "slice_sizes"}),
    "dynamic_update_slice": SyntaxRow(),
    "gather": SyntaxRow(more=("dimension_numbers", "slice_sizes", "indices_are_sorted")),
    "if": SyntaxRow(),
    "iota": SyntaxRow({"dim": "iota_dimension"}, operands=0),
    "map": SyntaxRow(more=("dimensions",)),
    "optimization_barrier": SyntaxRow(),
    "pad": SyntaxRow(_PAD),
    "reduce": SyntaxRow(more=("dimensions",)),
    "reduce_precision": SyntaxRow({"format": "format"}, more=("exponent_bits", "mantissa_bits"), operands=1),
    "reduce_window": SyntaxRow(more=_WINDOW),
    "reverse": SyntaxRow({"dims": "dimensions"}),
    "scatter": SyntaxRow(more=_SCATTER),
    "select_and_scatter": SyntaxRow(more=(*_WINDOW[:2], "padding")),
    "slice": SyntaxRow(more=("start_indices", "limit_indices", "strides")),
    "sort": SyntaxRow(more=("dimension", "is_stable")),
    "transpose": SyntaxRow({"dims": "permutation"}),
    "while": SyntaxRow(),
}
"""Map the name of each op of StableHLO that is read to its row."""

_RANDOM = "te has no random numbers; jax.random's own functions draw theirs by arithmetic"
_OF_DYNAMIC_SHAPE = (
    "dynamic_broadcast_in_dim", "dynamic_conv", "dynamic_gather", "dynamic_iota", "dynamic_pad", "dynamic_reshape",
    "get_dimension_size", "real_dynamic_slice", "set_dimension_size",
)  # fmt: skip
_OF_DEVICES = (
    "after_all", "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "infeed",
    "outfeed", "partition_id", "recv", "reduce_scatter", "replica_id", "send",
)  # fmt: skip
_FACTORS = "te has no factorisations"
FORMLESS: dict[str, str] = {
    "rng": _RANDOM,
    "rng_bit_generator": _RANDOM,
    "cholesky": _FACTORS,
    "triangular_solve": _FACTORS,
    "fft": "te has no complex numbers",
    "complex": "te has no complex numbers",
    "real": "te has no complex numbers",
    "imag": "te has no complex numbers",
    "uniform_quantize": "te has no quantised types",
    "uniform_dequantize": "te has no quantised types",
    "tuple": "results of te are tensors",
    "get_tuple_element": "results of te are tensors",
    **dict.fromkeys(_OF_DYNAMIC_SHAPE, "shapes of te are static: export for shapes of numbers"),
    **dict.fromkeys(_OF_DEVICES, "a te function runs on one device"),
}
"""Map each op of StableHLO without a te form to the reason."""
