"""The schedule that a caller asks for: the rules', a database's, or the program as written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from compiler.errors import InputError

Way: TypeAlias = str | Path
"""AUTO, WRITTEN, or the path of a database."""
AUTO, WRITTEN = "auto", "written"
VARIABLE = "STRATA_SCHEDULE"
"""The environment variable that says it where a caller does not."""


def way_of(stated: object) -> Way:
    """The way that is stated; None stands for the environment's, else AUTO. Raises InputError for an unknown way, and
    for a path without a file."""
    given = os.environ.get(VARIABLE) or AUTO if stated is None else stated
    if given in (AUTO, WRITTEN):
        return str(given)
    where = f" ({VARIABLE})" if stated is None else ""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"schedule is a {type(given).__name__}, expected {AUTO}, {WRITTEN} or the path of a database")
    path = Path(given)
    if not path.is_file():
        raise InputError(f"schedule is '{given}'{where}: neither {AUTO} nor {WRITTEN}, and no file of that name")
    return path
