"""The reasons for which operators have no te form."""

from __future__ import annotations

DATA = "the extents of its result depend on data, which a static shape cannot"
SHAPES = "data decide its shape"
SCATTER = "it writes at indices that data decide (a scatter); te computes each element from reads"
RANDOM = "its result is random"
STRINGS = "it works on strings"
SEQUENCES = "it works on sequences of tensors, or on optional ones"
FILES = "it decodes a file format"
TREES = "it walks trees, vocabularies or tables of classical machine learning"
TRAINING = "it is a step of training"

REASONS: dict[str, tuple[str, ...]] = {
    SHAPES: ("ConstantOfShape",),
    DATA: ("NonZero", "Unique", "NonMaxSuppression", "Compress"),
    SCATTER: ("Scatter", "ScatterElements", "ScatterND", "TensorScatter", "MaxUnpool", "MaxRoiPool"),
    RANDOM: (
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
        "Bernoulli",
        "Multinomial",
    ),
    STRINGS: ("StringConcat", "StringNormalizer", "StringSplit", "RegexFullMatch", "TfIdfVectorizer"),
    SEQUENCES: (
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
    ),
    FILES: ("ImageDecoder",),
    TREES: ("ArrayFeatureExtractor", "LabelEncoder", "TreeEnsemble", "TreeEnsembleClassifier"),
    TRAINING: ("Adagrad", "Adam", "Momentum", "Gradient"),
}
"""Map each reason to the operators that are refused for it."""
REASON_OF = {name: reason for reason, names in REASONS.items() for name in names}
WAY_OUT = "a plugin's `onnx_operator` or a function in the model's `functions` would do"
UNWRITTEN = f"nobody has written its te form yet; {WAY_OUT}"
RANDOM_OPERATORS = frozenset(REASONS[RANDOM])
"""Operators with random results: they are not folded even if their inputs are constant."""


def reason_of(domain: str, operator: str) -> str:
    """Return the reason for which an operator of a domain has no te form."""
    if operator in REASON_OF:
        return REASON_OF[operator]
    if domain not in ("", "ai.onnx", "ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training"):
        return f"nothing is known of the domain '{domain}'; {WAY_OUT}"
    return UNWRITTEN
