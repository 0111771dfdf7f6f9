"""`Log`: the calls of a search and their results, one line of JSON a call; `LogFile`: its file."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict
from io import FileIO
from typing import Self

import numpy as np

from compiler.autotune.search.model import WarmStart
from compiler.autotune.search.options import Options
from compiler.database.outcome import Outcome
from compiler.database.record import Json
from compiler.space.candidates import Candidate
from compiler.support.files import to_path, write_errors


class Log:
    """The calls of a search in their order. The first line has the constructor's arguments, earlier tasks included, so
    that a log replays without anything but the space."""

    def __init__(
        self, sizes: Sequence[tuple[int, ...]], seed: int, options: Options, warm_starts: Sequence[WarmStart]
    ) -> None:
        self.lines: list[str] = []
        arguments = {
            "seed": seed,
            "options": asdict(options),
            "sizes": sizes,
            "past": [warm_start_data(warm_start) for warm_start in warm_starts],
        }
        self._write(search=arguments)

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self.lines)

    def proposed(self, count: int, gave: Sequence[tuple[Candidate, float | None, str]]) -> None:
        """Log a call of `propose` and its result `gave`: the candidate, prediction and source of each proposal."""
        self._write(propose=count, gave=[[*candidate, predicted, why] for candidate, predicted, why in gave])

    def updated(self, candidate: Candidate, outcome: Outcome) -> None:
        """Log a call of `update`, without the disturbance of the outcome."""
        fields = asdict(outcome)
        del fields["disturbance"]  # the search does not read it
        self._write(update=candidate, outcome=fields)

    def called(self, name: str) -> None:
        """Log a call without arguments, by the name of its method."""
        self._write(call=name)

    def _write(self, **entry: object) -> None:
        self.lines.append(json.dumps(entry))


class LogFile:
    """The file of a log, written line by line while its search runs; without a path nothing is written. `written`
    counts the lines, also without a path. A context manager that closes the file. Raises InputError if the file cannot
    be written."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.written = 0
        self._path = None if path is None else to_path(path)
        self._file: FileIO | None = None
        if self._path is not None:
            with write_errors(self._path):
                self._file = FileIO(self._path, "w")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, lines: Sequence[str]) -> None:
        """Append lines, unbuffered: readers of the file see them at once. Without a file only count them. Raises
        InputError if the file cannot be written."""
        self.written += len(lines)
        if self._file is None or self._path is None:
            return
        unwritten = memoryview("".join(f"{line}\n" for line in lines).encode())
        with write_errors(self._path):
            while unwritten:
                unwritten = unwritten[self._file.write(unwritten) :]


def warm_start_data(warm_start: WarmStart) -> dict[str, object]:
    """A warm start as JSON data; the features are little-endian f32 in base 64."""
    values = warm_start.values.astype("<f4", copy=False)
    text = b64encode(np.ascontiguousarray(values).tobytes()).decode()
    return {"shape": values.shape, "values": text, "costs": warm_start.costs.tolist()}


def warm_start_of(entry: Json) -> WarmStart:
    """The inverse of `warm_start_data`. Raises ValueError, KeyError or TypeError for malformed data."""
    rows, width = map(int, entry["shape"])
    values = np.frombuffer(b64decode(entry["values"], validate=True), dtype="<f4").reshape(rows, width)
    costs = np.array([float(cost) for cost in entry["costs"]])
    if len(costs) != rows or not np.isfinite(values).all() or not (np.isfinite(costs) & (costs > 0)).all():
        raise ValueError("earlier tasks have a positive cost for each row of finite features")
    return WarmStart(values.astype(np.float32), costs)
