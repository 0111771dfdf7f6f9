"""`Forest`: the random forest shipped with the package, as arrays, and its prediction without scikit-learn."""

from __future__ import annotations

import ast
import hashlib
import inspect
import zipfile
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import IO

import numpy as np
from numpy.typing import NDArray

from compiler.space import cpu_features
from compiler.types.machines import Machine

NAME = "data/forest.npz"
LEAF = -1
"""The feature of a node that has no children."""


@dataclass(frozen=True)
class Forest:
    """Binary decision trees: a row whose `feature` is at most a node's `threshold` goes to `left`, others to `right`.

    feature i16 (nodes,): a column, LEAF at a leaf. threshold f32 (nodes,). left, right i32 (nodes,): nodes. value f32
    (nodes,): the prediction of a leaf, log time relative to the median of a program's candidates, so that it compares
    candidates of one program. roots i32 (trees,): the first node of each tree. units i32 (machines, 2): the vector bits
    and registers of the machines of the training data.
    """

    feature: NDArray[np.int16]
    threshold: NDArray[np.float32]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: NDArray[np.float32]
    roots: NDArray[np.int32]
    units: NDArray[np.int32]

    def covers(self, machine: Machine) -> bool:
        """Whether a machine with the same vector bits and registers was in the training data."""
        return (machine.vector_bits, machine.registers) in {tuple(row) for row in self.units.tolist()}

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        """The mean prediction of the trees (n,) for rows (n, features). Raises ValueError for features that are not
        finite."""
        if not np.isfinite(rows).all():
            raise ValueError("features are finite")
        nodes = np.broadcast_to(self.roots, (len(rows), len(self.roots))).copy()
        row_numbers = np.arange(len(rows))[:, None]
        while (inner := self.feature[nodes] != LEAF).any():
            low = rows[row_numbers, self.feature[nodes]] <= self.threshold[nodes]
            nodes = np.where(inner, np.where(low, self.left[nodes], self.right[nodes]), nodes)
        return np.asarray(self.value[nodes].mean(axis=1, dtype=np.float64))

    def save(self, file: IO[bytes]) -> None:
        """Write the arrays as npz, with the hash of the code that computes the features."""
        arrays = {field.name: getattr(self, field.name) for field in fields(self)}
        np.savez_compressed(file, features=np.frombuffer(bytes.fromhex(features_hash()), np.uint8), **arrays)


def read_forest(file: IO[bytes]) -> Forest | None:
    """Read a forest from a file; None if it was trained on other features, or is damaged."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            if arrays["features"].tobytes().hex() != features_hash():
                return None
            forest = Forest(**{field.name: arrays[field.name] for field in fields(Forest)})
    except (OSError, EOFError, ValueError, KeyError, zipfile.BadZipFile):
        return None
    return forest if _is_sound(forest) else None


def _is_sound(forest: Forest) -> bool:
    """Whether a loaded forest is well-formed: arrays of equal length, roots in range, children after their parents,
    features that are valid columns, and `units` of shape (machines, 2). Prediction then terminates."""
    inner = np.flatnonzero(forest.feature != LEAF)
    nodes = len(forest.feature)
    even = {len(array) for array in (forest.threshold, forest.left, forest.right, forest.value)} == {nodes}
    if forest.units.ndim != 2 or forest.units.shape[1] != 2:
        return False
    if not even or len(forest.roots) == 0 or not ((forest.roots >= 0) & (forest.roots < nodes)).all():
        return False
    children = np.stack([forest.left[inner], forest.right[inner]])
    columns = (forest.feature[inner] >= 0) & (forest.feature[inner] < cpu_features.WIDTH)
    return bool(columns.all() and ((children > inner) & (children < nodes)).all())


@cache
def shipped_forest() -> Forest | None:
    """The shipped forest; None if the package has none for its current features."""
    resource = files("compiler.driver.choice").joinpath(NAME)
    if not resource.is_file():
        return None
    with resource.open("rb") as file:
        return read_forest(file)


@cache
def features_hash() -> str:
    """The first 32 hex digits of the SHA-256 of the syntax tree of the module `cpu_features`, without its comments and
    docstrings. Modules that it imports do not count."""
    tree = ast.parse(inspect.getsource(cpu_features))
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [statement for statement in body if not _is_text(statement)] or [ast.Pass()]  # type: ignore[attr-defined]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()[:32]


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
