"""What is left out of the share of compiled samples, by ATen operators, and results that differ by choice."""

from __future__ import annotations

import re
from collections.abc import Iterable

MOVES = "pure moves"
LEFT_OUT = {
    MOVES: r"\w+_copy|as_strided\w*",
    "factorisations": r"_?linalg_(?!vector_norm|cross|householder)\w+|_?cholesky\w*|\w*triangular_solve\w*"
    r"|lu_unpack|_?lu_\w+|geqrf|ormqr|orgqr|linalg_householder_product|_?svd\w*|lobpcg|qr|inverse",
    "FFT": r"_?fft_\w+|stft|istft",
    "random numbers": r"rand\w*|bernoulli\w*|\w*dropout|multinomial|normal\w*|_?uniform\w*|poisson|binomial|exponential"
    r"|geometric|cauchy|log_normal|rrelu\w*|_sample_dirichlet|_standard_gamma|fractional_max_pool\w*|rrelu_with_noise\w*",
    "shapes that data decide": r"nonzero\w*|masked_select|_?unique\w*|_local_scalar_dense|repeat_interleave"
    r"|bincount|equal|is_nonzero|argwhere|item|allclose",
}
"""Classes, each with the ATen operators that are of it; a sample is of the first that one of its own is of."""


def class_of(operators: Iterable[str]) -> str | None:
    """The class that leaves a sample with these ATen operators out of the share; None for the others."""
    names = [name.removeprefix("aten.").split(".")[0] for name in operators]
    for title, pattern in LEFT_OUT.items():
        if any(re.fullmatch(pattern, name) for name in names):
            return title
    return None


BY_CHOICE: dict[str, str] = {
    "pca_lowrank": "its directions are up to their signs, and its start is random",
    "svd_lowrank": "its directions are up to their signs, and its start is random",
    "empty": "its elements are not initialised",
    "empty_like": "its elements are not initialised",
    "empty_permuted": "its elements are not initialised",
    "empty_strided": "its elements are not initialised",
    "new_empty": "its elements are not initialised",
    "new_empty_strided": "its elements are not initialised",
}
"""Operators whose results are not compared, each with the reason."""


AMONG_EQUALS: dict[str, str] = {
    r"topk|kthvalue": "the place of one of several equal elements, which torch does not promise"
}
"""Operators whose last result, places, may differ from eager ones where all others are equal, each with the reason."""

SPECIAL: dict[str, str] = {
    r"kthvalue|(nn\.functional\.)?(adaptive_)?max_pool\w+": "the place of one of several equal elements, or NaN",
    r"(var|std)_mean.*|native_(layer|group)_norm": "the mean of infinities is one, where eager's running mean is NaN",
    r"nn\.functional\.conv_transpose\w+": "zeros at the borders are multiplied, which infinities make NaN",
    r"nn\.functional\.interpolate:.*linear": "a pixel of weight zero is not read, or is, where eager does otherwise",
    r"_?(native_)?batch_norm\w*|nn\.functional\.(instance|batch)_norm": "scale and shift are applied in another order",
}
"""Operators whose results differ from eager ones where numbers are special, each with the reason."""


def reason_of(operator: str, reasons: dict[str, str]) -> str | None:
    """The reason of a table why an operator may give other results than eager ones; None where it may not."""
    return next((reason for pattern, reason in reasons.items() if re.fullmatch(pattern, operator)), None)
