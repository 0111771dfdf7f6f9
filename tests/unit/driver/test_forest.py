"""The forest that ships: it predicts as scikit-learn does, is refused where it is damaged, and chooses sizes."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from compiler import lower
from compiler.driver.choice import forest
from compiler.driver.choice import preferred as choice
from compiler.driver.choice.forest import LEAF, Forest
from compiler.recipes.rules import RULES
from compiler.schedule import Schedule
from compiler.space.cpu_features import WIDTH
from compiler.space.derivation import preferred
from compiler.space.sketch import Sketch
from compiler.types.machines import Machine
from tests.programs import matmul
from tools import train

MACHINE = Machine("test", "", "", 2, 512, 32, 32 << 10, 1 << 20, 8 << 20)


def _rows(count: int = 300) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    random = np.random.default_rng(0)
    values = random.standard_normal((count, WIDTH)).astype(np.float32)
    return values, values[:, 3] + np.where(values[:, 5] > 0.5, 2.0, values[:, 7])


def _forest() -> Forest:
    return train.fitted(*_rows(), [MACHINE])


def test_arrays_predict_what_the_library_does() -> None:
    values, targets = _rows()
    forest_of_library = RandomForestRegressor(8, min_samples_leaf=2, random_state=1).fit(values, targets)
    arrays = train.as_arrays([estimator.tree_ for estimator in forest_of_library.estimators_])
    more_rows = np.random.default_rng(2).standard_normal((500, WIDTH)).astype(np.float32)
    more_rows[:64] = values[:64]
    np.testing.assert_allclose(arrays.predict(more_rows), forest_of_library.predict(more_rows), rtol=1e-6, atol=1e-6)


def test_a_threshold_that_float32_rounds_up_keeps_its_side() -> None:
    class Tree:
        children_left, children_right = np.array([1, -1, -1]), np.array([2, -1, -1])
        feature, threshold = np.array([0, -2, -2]), np.array([0.1, -2.0, -2.0])
        value = np.array([[[0.0]], [[1.0]], [[2.0]]])

    rounded = np.float32(0.1)
    assert float(rounded) > 0.1
    row = np.full((1, WIDTH), rounded, np.float32)
    assert train.as_arrays([Tree]).predict(row)[0] == 2.0


def _saved(found: Forest) -> bytes:
    file = io.BytesIO()
    found.save(file)
    return file.getvalue()


def test_a_file_gives_the_forest_again() -> None:
    actual = _forest()
    again = forest.read_forest(io.BytesIO(_saved(actual)))
    assert again is not None
    np.testing.assert_array_equal(again.predict(_rows()[0]), actual.predict(_rows()[0]))


def test_it_knows_machines_with_the_vector_units_that_were_measured() -> None:
    again = forest.read_forest(io.BytesIO(_saved(_forest())))
    assert again is not None and again.covers(MACHINE) and again.covers(replace(MACHINE, l2_bytes=1 << 19))
    assert not again.covers(replace(MACHINE, registers=16)) and not again.covers(replace(MACHINE, vector_bits=256))
    assert not train.fitted(*_rows()).covers(MACHINE)


def test_a_forest_of_other_features_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = _saved(_forest())
    monkeypatch.setattr(forest, "features_hash", lambda: "00" * 16)
    assert forest.read_forest(io.BytesIO(saved)) is None


def test_damaged_files_are_not_used() -> None:
    actual, saved = _forest(), _saved(_forest())
    inner = int(np.flatnonzero(actual.feature != LEAF)[3])
    for text in (b"", saved[:100], saved[: len(saved) // 2]):
        assert forest.read_forest(io.BytesIO(text)) is None
    for name, value in (("left", 0), ("left", inner), ("right", len(actual.left)), ("feature", WIDTH), ("feature", -2)):
        array = getattr(actual, name).copy()
        array[inner] = value
        assert forest.read_forest(io.BytesIO(_saved(replace(actual, **{name: array})))) is None, name
    assert forest.read_forest(io.BytesIO(_saved(replace(actual, roots=np.array([-1], np.int32))))) is None
    assert forest.read_forest(io.BytesIO(_saved(replace(actual, units=np.array([256, 16], np.int32))))) is None
    assert forest.read_forest(io.BytesIO(_saved(replace(actual, value=actual.value[:-1])))) is None


def test_the_hash_is_of_code_not_of_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    source = forest.inspect.getsource(forest.cpu_features)
    hashes = []
    for text in (
        source,
        source.replace('"""Features', '"""Or so. Features'),
        source.replace("DEPTHS = 5", "DEPTHS = 6"),
    ):
        forest.features_hash.cache_clear()
        monkeypatch.setattr(forest.inspect, "getsource", lambda module, text=text: text)
        hashes.append(forest.features_hash())
    monkeypatch.undo()
    forest.features_hash.cache_clear()
    assert hashes[0] == hashes[1] != hashes[2] and hashes[0] == forest.features_hash()


def _sketch() -> tuple[Schedule, Schedule, Sketch]:
    original = Schedule(lower(matmul(96, 128, 80, name="f", output="matmul")))
    actual = preferred(original, RULES, MACHINE).draft.schedule
    return original, actual, Sketch.of("", original.program, actual)


class _Prefers:
    """A forest that says how far positions are from some."""

    def __init__(self, by: float) -> None:
        self.by = by

    def predict(self, rows: NDArray[np.float32]) -> NDArray[np.float64]:
        said = np.zeros(len(rows))
        said[-1] = -self.by
        return said


@pytest.mark.parametrize(("by", "changes"), [(2 * choice.MARGIN, True), (0.5 * choice.MARGIN, False)])
def test_sizes_are_changed_where_the_forest_prefers_others_clearly(by: float, changes: bool) -> None:
    original, actual, sketch = _sketch()
    assert sketch.choices
    filled = choice.with_predicted_choices(original, actual, MACHINE, _Prefers(by))  # type: ignore[arg-type]
    assert (str(filled.script) != str(actual.script)) == changes
    assert filled.program.blocks.keys() == actual.program.blocks.keys()


def test_candidates_begin_with_the_recorded_ones() -> None:
    _, _, sketch = _sketch()
    actual = choice.candidate_positions(sketch)
    assert tuple(actual[0]) == sketch.recorded_positions and len(actual) <= choice.CANDIDATES
    assert len({tuple(row) for row in actual}) == len(actual)
    np.testing.assert_array_equal(actual, choice.candidate_positions(sketch))


def test_what_ships_is_for_these_features_and_small() -> None:
    assert not train.FOREST.exists() or forest.shipped_forest() is not None, "run python tools/train.py fit"
    assert sum(path.stat().st_size for path in train.DATA.glob("*")) < 4e6
    assert not train.RECORDS.exists() or train.RECORDS.stat().st_size <= 2e6


def test_no_training_program_is_held_out() -> None:
    families = [family for family, _ in train.programs()]
    assert set(families) == set(train.FAMILIES) and len(families) >= 50
