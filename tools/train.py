"""Make the forest that ships: `python tools/train.py` measures candidates of many programs and fits it to them.

    python tools/train.py measure DATABASE   tune the programs below, each by some trials; goes on where it stopped
    python tools/train.py fit DATABASE       keep the records that tell most, fit, and judge by families held out
    python tools/train.py fit                the same from the records that are kept already, such as for new features

What is kept is compiler/driver/choice/data: records.jsonl.xz (programs, scripts and times, at most 2 MB) and
forest.npz. The programs are of the kinds that networks contain, at sizes drawn at random; none is a group of
`benchmarks.networks`, which are what defaults are judged by: that is checked by canonical hashes.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestRegressor

from benchmarks.networks import NETWORKS
from compiler import te
from compiler.autotune.options import TuningOptions
from compiler.autotune.search.model import flattened
from compiler.autotune.task import SearchTask
from compiler.database import Database
from compiler.database.replay import plan_record
from compiler.driver.choice.forest import LEAF, Forest
from compiler.graph.canonical import canonical_hash
from compiler.graph.grouped_module import group_program
from compiler.passes.split_constants import without_preparation
from compiler.space.cpu_features import WIDTH, extract
from compiler.space.space import work
from compiler.support.errors import ScheduleError
from compiler.te.tensor import Tensor
from compiler.types.machines import Machine, host

nn = te.nn
DATA = Path(__file__).parents[1] / "compiler" / "driver" / "choice" / "data"
RECORDS, FOREST = DATA / "records.jsonl.xz", DATA / "forest.npz"
TRIALS = 32
"""Trials of each program."""
KEPT = 32
"""Records of each program that are kept: the best half, and of the rest evenly over their times."""
TREES, LEAVES, LEAST = 48, 400, 4
"""Trees, leaves of one at most, and rows of a leaf at least."""


def _in(*shape: int, name: str = "X") -> Tensor:
    tensor: Tensor = te.placeholder(shape, "f32", name)
    return tensor


def _product(draw: random.Random) -> te.Function:
    m, n, k = (draw.choice((17, 48, 64, 100, 160, 196, 256, 392, 640, 1000, 1536)) for _ in range(3))
    x, w, b = _in(m, k), _in(k, n, name="W"), _in(n, name="b")
    after = draw.choice((nn.relu, nn.gelu, lambda t: t))
    return te.function("f", [x, w, b], after(nn.add(nn.matmul(x, w), b)))


def _thin(draw: random.Random) -> te.Function:
    m, n, k = draw.choice((1, 2, 5, 8, 12)), *(draw.choice((192, 500, 1024, 1536, 3000)) for _ in range(2))
    x, turned = _in(m, k), draw.random() < 0.3
    w = _in(n, k, name="W") if turned else _in(k, n, name="W")
    return te.function("f", [x, w], nn.dense(x, w) if turned else nn.matmul(x, w))


def _convolution(draw: random.Random) -> te.Function:
    size, kernel, stride = draw.choice((9, 13, 20, 27, 40, 60)), draw.choice((1, 1, 3, 3, 5)), draw.choice((1, 1, 2))
    channels, filters = (draw.choice((12, 20, 40, 72, 96, 136, 200)) for _ in range(2))
    x, w, b = _in(1, channels, size, size), _in(filters, channels, kernel, kernel, name="W"), _in(filters, name="b")
    return te.function("f", [x, w, b], nn.relu(nn.conv2d(x, w, b, stride=stride, padding=kernel // 2)))


def _depthwise(draw: random.Random) -> te.Function:
    channels, size = draw.choice((40, 56, 88, 120, 200, 360)), draw.choice((9, 13, 20, 30, 48, 80))
    kernel, stride = draw.choice((3, 5)), draw.choice((1, 2))
    x, w = _in(1, channels, size, size), _in(channels, 1, kernel, kernel, name="W")
    return te.function("f", [x, w], nn.relu(nn.depthwise_conv2d(x, w, stride=stride, padding=kernel // 2)))


def _volume(draw: random.Random) -> te.Function:
    frames, size, channels = draw.choice((4, 6, 10)), draw.choice((10, 18, 26)), draw.choice((6, 12, 20, 40))
    x, w = _in(1, channels, frames, size, size), _in(draw.choice((12, 24, 40)), channels, 3, 3, 3, name="W")
    return te.function("f", [x, w], nn.relu(nn.conv3d(x, w, padding=1)))


def _rows(draw: random.Random) -> te.Function:
    x = _in(draw.choice((24, 100, 400, 1500)), draw.choice((50, 200, 512, 1000, 3000)))
    g, h = _in(x.shape[1], name="g"), _in(x.shape[1], name="h")
    kind = draw.randrange(3)
    if kind == 0:
        return te.function("f", [x], nn.softmax(x))
    return (
        te.function("f", [x, g, h], nn.layer_norm(x, g, h))
        if kind == 1
        else te.function("f", [x, g], nn.rms_norm(x, g))
    )


def _attention(draw: random.Random) -> te.Function:
    heads, length, depth = draw.choice((2, 6, 10)), draw.choice((50, 100, 200)), draw.choice((24, 40, 80))
    q, k, v = (_in(heads, length, depth, name=name) for name in "QKV")
    return te.function("f", [q, k, v], nn.attention(q, k, v))


def _pool(draw: random.Random) -> te.Function:
    x = _in(1, draw.choice((20, 48, 100)), *[draw.choice((15, 26, 60, 100))] * 2)
    kind = draw.randrange(3)
    made = (nn.max_pool2d(x, 3, 2, 1), nn.avg_pool2d(x, 2, 2), nn.global_avg_pool(x))[kind]
    return te.function("f", [x], made)


def _pointwise(draw: random.Random) -> te.Function:
    shape = draw.choice((100, 700)), 600 + draw.randrange(900)
    x, y = _in(*shape), _in(*shape, name="Y")
    return te.function("f", [x, y], nn.mul(draw.choice((nn.sigmoid, nn.gelu, nn.tanh))(x), y))


FAMILIES: dict[str, tuple[Callable[[random.Random], te.Function], int]] = {
    "product": (_product, 10),
    "thin": (_thin, 6),
    "convolution": (_convolution, 14),
    "depthwise": (_depthwise, 8),
    "volume": (_volume, 4),
    "rows": (_rows, 6),
    "attention": (_attention, 3),
    "pool": (_pool, 4),
    "pointwise": (_pointwise, 3),
}
"""By family, a generator of random programs, and the number of programs."""


def programs() -> Iterator[tuple[str, te.Function]]:
    """The programs to measure, each with its family; families in turns, so that the first measurements cover all.
    Raises AssertionError for a program that is held out."""
    held_out = _held_out()
    made: list[tuple[float, str, te.Function]] = []
    for family, (make, count) in FAMILIES.items():
        draw = random.Random(family)
        made += [(n / count, family, make(draw)) for n in range(count)]
    for _, family, function in sorted(made, key=lambda drawn: drawn[0]):
        assert canonical_hash(function.module) not in held_out, f"{family}: it is a group of a network"
        yield family, function


def _held_out() -> set[str]:
    """The canonical hashes of all groups of the networks that defaults are judged by."""
    return {hash for make in NETWORKS.values() for hash in group_program(make().module).hashes.values()}


def measure(database: Path, trials: int = TRIALS) -> None:
    """Tune every program with `trials` trials; trials that the database already has count."""
    for number, (family, function) in enumerate(programs()):
        weights = [tensor.name for tensor in function.inputs if tensor.name in ("W", "b", "g", "h")]
        task = SearchTask(function, threads=1, constants=weights, name=f"{family} {number}")
        print(f"{task.name}: {task.space.sizes}", flush=True)
        task.tune(TuningOptions(trials=trials, database=database))


@dataclass(frozen=True)
class Row:
    """A measured candidate: its family, its program and script as texts, and the median of its costs."""

    family: str
    program: str
    script: str
    cost: float


@dataclass(frozen=True)
class Kept:
    """The stored measurements of one machine."""

    machine: Machine
    rows: tuple[Row, ...]


def rows_of(database: Path) -> Iterator[Row]:
    """Yield at most KEPT candidates of each program of a database: the cheapest KEPT / 2, and the others evenly over
    their costs."""
    with Database(database, create=False) as opened:
        for summary in opened.keys():  # noqa: SIM118
            by_script: defaultdict[str, list[float]] = defaultdict(list)
            texts = opened.records(summary.key)
            for record in texts:
                if record.outcome.is_comparable:
                    by_script[record.script].append(record.outcome.cost)
            if not by_script:
                continue
            costs = sorted((median(costs), script) for script, costs in by_script.items())
            family = texts[0].name.rpartition(" ")[0]
            yield from (Row(family, texts[0].program, script, cost) for cost, script in _telling(costs))


def _telling(costs: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    best, worse = list(costs[: KEPT // 2]), costs[KEPT // 2 :]
    step = max(1.0, len(worse) / (KEPT // 2))
    return best + [worse[int(n * step)] for n in range(min(len(worse), KEPT // 2))]


def write_records(kept: Sequence[Kept]) -> None:
    """Replace the stored records by these, a line for each program with all of its scripts."""
    lines = []
    for of_machine in kept:
        by_program: defaultdict[tuple[str, str], list[tuple[str, float]]] = defaultdict(list)
        for row in of_machine.rows:
            by_program[row.family, row.program].append((row.script, row.cost))
        for (family, program), scripts in by_program.items():
            lines.append(
                {"machine": asdict(of_machine.machine), "family": family, "program": program, "scripts": scripts}
            )
    text = "".join(json.dumps(line) + "\n" for line in lines)
    DATA.mkdir(exist_ok=True)
    RECORDS.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def read_records() -> list[Kept]:
    """The stored measurements."""
    by_machine: dict[Machine, list[Row]] = defaultdict(list)
    for line in lzma.decompress(RECORDS.read_bytes()).decode().splitlines():
        entry = json.loads(line)
        machine = Machine(**entry["machine"])
        by_machine[machine] += [
            Row(entry["family"], entry["program"], script, cost) for script, cost in entry["scripts"]
        ]
    return [Kept(machine, tuple(rows)) for machine, rows in by_machine.items()]


@dataclass(frozen=True)
class Table:
    """Features (n, features), targets (n,), families and numbers of programs (n,) of the records of all machines."""

    values: NDArray[np.float32]
    targets: NDArray[np.float64]
    families: NDArray[np.str_]
    programs: NDArray[np.int64]


def table_of(kept: Sequence[Kept]) -> Table:
    """Return features and targets of all records: logarithms of the costs, flattened, relative to the median of the
    program. Records whose scripts no longer apply, and programs with fewer than two others, are left out."""
    values: list[NDArray[np.float32]] = []
    targets: list[float] = []
    families: list[str] = []
    numbers: list[int] = []
    names: dict[tuple[str, str], int] = {}
    for of_machine in kept:
        by_program: Mapping[str, list[Row]] = defaultdict(list)
        for row in of_machine.rows:
            by_program[row.program].append(row)
        for program, rows in by_program.items():
            number = names.setdefault((of_machine.machine.name, program), len(names))
            told = [(row, features) for row in rows if (features := _features(row, of_machine.machine)) is not None]
            if len(told) < 2:
                continue
            logs = flattened(np.log([row.cost for row, _ in told]))
            values += [features for _, features in told]
            targets += list(logs - np.median(logs))
            families += [row.family for row, _ in told]
            numbers += [number] * len(told)
    return Table(np.array(values, np.float32), np.array(targets), np.array(families), np.array(numbers))


def _features(row: Row, machine: Machine) -> NDArray[np.float32] | None:
    try:
        original, scheduled = plan_record(row)
    except ScheduleError:
        return None
    features = extract(without_preparation(scheduled), work(original), machine).features
    assert len(features) == WIDTH
    return np.array(features, np.float32)


def fitted(values: NDArray[np.float32], targets: NDArray[np.float64], machines: Sequence[Machine] = ()) -> Forest:
    """Fit a forest to features and targets; `machines` are those on which they were measured."""
    forest = RandomForestRegressor(
        TREES, max_leaf_nodes=LEAVES, min_samples_leaf=LEAST, max_features=0.4, random_state=0, n_jobs=1
    )
    forest.fit(values, targets)
    return as_arrays([tree.tree_ for tree in forest.estimators_], machines)


def as_arrays(trees: Sequence[object], machines: Sequence[Machine] = ()) -> Forest:
    """Convert trees of scikit-learn to arrays. A threshold is rounded down to float32: a float32 feature is then at
    most the rounded threshold exactly if it is at most the threshold."""
    parts: defaultdict[str, list[NDArray[np.float64]]] = defaultdict(list)
    roots, start = [], 0
    for tree in trees:
        leaf = tree.children_left < 0  # type: ignore[attr-defined]
        exact = tree.threshold  # type: ignore[attr-defined]
        near = exact.astype(np.float32)
        near = np.where(near > exact, np.nextafter(near, np.float32(-np.inf)), near)
        parts["feature"].append(np.where(leaf, LEAF, tree.feature))  # type: ignore[attr-defined]
        parts["threshold"].append(np.where(leaf, 0, near))
        parts["left"].append(np.where(leaf, 0, tree.children_left + start))  # type: ignore[attr-defined]
        parts["right"].append(np.where(leaf, 0, tree.children_right + start))  # type: ignore[attr-defined]
        parts["value"].append(tree.value[:, 0, 0])  # type: ignore[attr-defined]
        roots.append(start)
        start += len(leaf)
    joined = {name: np.concatenate(arrays) for name, arrays in parts.items()}
    return Forest(
        joined["feature"].astype(np.int16),
        joined["threshold"].astype(np.float32),
        joined["left"].astype(np.int32),
        joined["right"].astype(np.int32),
        joined["value"].astype(np.float32),
        np.array(roots, np.int32),
        np.array(sorted({(machine.vector_bits, machine.registers) for machine in machines}), np.int32).reshape(-1, 2),
    )


def judge(table: Table) -> None:
    """Print, for each family held out, how much slower than the best measured candidate the forest's choice is, beside
    that of a candidate at random: geometric means over the programs."""
    print(f"{'held out':14} {'programs':>8} {'chosen':>8} {'at random':>10}")
    for family in sorted(set(table.families)):
        held_out = table.families == family
        forest = fitted(table.values[~held_out], table.targets[~held_out])
        chosen, drawn = [], []
        for program in sorted(set(table.programs[held_out])):
            mine = table.programs == program
            targets = table.targets[mine]
            said = forest.predict(table.values[mine])
            chosen.append(targets[np.argmin(said)] - targets.min())
            drawn.append(targets.mean() - targets.min())
        print(f"{family:14} {len(chosen):8} {np.exp(np.mean(chosen)):8.3f} {np.exp(np.mean(drawn)):10.3f}")


def fit(database: Path | None) -> None:
    """Store the records of a database, if there is one, beside those of other machines; fit the forest, judge it, and
    save it."""
    if database is not None:
        of_other_machines = (
            [record for record in read_records() if record.machine != host()] if RECORDS.exists() else []
        )
        write_records([*of_other_machines, Kept(host(), tuple(rows_of(database)))])
    kept = read_records()
    for of_machine in kept:
        count = len({row.program for row in of_machine.rows})
        print(f"{of_machine.machine.name}: {count} programs, {len(of_machine.rows)} records")
    table = table_of(kept)
    judge(table)
    with FOREST.open("wb") as file:
        fitted(table.values, table.targets, [record.machine for record in kept]).save(file)
    print(f"{RECORDS.name}: {RECORDS.stat().st_size / 1e6:.2f} MB; {FOREST.name}: {FOREST.stat().st_size / 1e6:.2f} MB")


def main() -> None:
    """Run the step that the arguments name: measure or fit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("measure", "fit"))
    parser.add_argument("database", type=Path, nargs="?")
    parser.add_argument("--trials", type=int, default=TRIALS, help=f"of each program (default {TRIALS})")
    options = parser.parse_args()
    if options.step == "measure":
        if options.database is None:
            parser.error("measure needs a database")
        measure(options.database, options.trials)
    else:
        fit(options.database)


if __name__ == "__main__":
    main()
