"""`Log`: the calls of a search and their answers, one line of JSON a call; `LogFile`: its file."""

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
from compiler.support.files import named, writing


class Log:
    """The calls of a search in their order; the first line says what it was made with, earlier tasks included: a log
    replays from itself and the space alone."""

    def __init__(
        self, sizes: Sequence[tuple[int, ...]], seed: int, options: Options, warm_starts: Sequence[WarmStart]
    ) -> None:
        self.lines: list[str] = []
        made = {
            "seed": seed,
            "options": asdict(options),
            "sizes": sizes,
            "past": [warm_start_data(warm_start) for warm_start in warm_starts],
        }
        self._write(search=made)

    def __str__(self) -> str:
        return "".join(line + "\n" for line in self.lines)

    def proposed(self, count: int, gave: Sequence[tuple[Candidate, float | None, str]]) -> None:
        """A call of `propose`, and its answer."""
        self._write(propose=count, gave=[[*candidate, predicted, why] for candidate, predicted, why in gave])

    def updated(self, candidate: Candidate, outcome: Outcome) -> None:
        """A call of `update`."""
        said = asdict(outcome)
        del said["disturbance"]  # the search does not look at it
        self._write(update=candidate, outcome=said)

    def called(self, name: str) -> None:
        """A call without arguments."""
        self._write(call=name)

    def _write(self, **entry: object) -> None:
        self.lines.append(json.dumps(entry))


class LogFile:
    """The file of a log, written line by line as its search goes on; nothing where no file is asked for.

    A context manager: leaving it closes the file. Raises InputError where the file cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.written = 0
        self._path = None if path is None else named(path)
        self._file: FileIO | None = None
        if self._path is not None:
            with writing(self._path):
                self._file = FileIO(self._path, "w")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def write(self, lines: Sequence[str]) -> None:
        """Write further lines; whoever reads the file finds them at once."""
        self.written += len(lines)
        if self._file is None or self._path is None:
            return
        left = memoryview("".join(f"{line}\n" for line in lines).encode())
        with writing(self._path):
            while left:
                left = left[self._file.write(left) :]


def warm_start_data(warm_start: WarmStart) -> dict[str, object]:
    """What an earlier task measured, as JSON data; features as the bytes of little-endian f32 in base 64."""
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
