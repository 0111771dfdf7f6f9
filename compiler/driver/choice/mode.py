"""The schedule that a caller asks for: the rules', a database's, a script, or the program as written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.transform import NamedSequenceOp

from compiler.schedule import Schedule
from compiler.schedule.script import is_text, script_of
from compiler.support import files
from compiler.support.errors import InputError

Way: TypeAlias = str | Path | NamedSequenceOp
"""AUTO, WRITTEN, the path of a database, or a script."""
AUTO, WRITTEN = "auto", "written"
VARIABLE = "STRATA_SCHEDULE"
"""The environment variable that says it where a caller does not."""
DATABASE = b"SQLite format 3\0"
"""How a database begins."""
EXPECTED = f"{AUTO}, {WRITTEN}, the path of a database, or a script: its text, its IR, or the path of its file"


def way_of(stated: object) -> Way:
    """The way that is stated; None stands for the environment's, else AUTO. Raises InputError for an unknown way, and
    for a path without a file, ScheduleError for text that is no script."""
    given = os.environ.get(VARIABLE) or AUTO if stated is None else stated
    if isinstance(given, Schedule):
        return script_of(given.script)
    if isinstance(given, ModuleOp | NamedSequenceOp) or (isinstance(given, str) and is_text(given)):
        return script_of(given)
    if given in (AUTO, WRITTEN):
        return str(given)
    where = f" ({VARIABLE})" if stated is None else ""
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"schedule is a {type(given).__name__}, expected {EXPECTED}")
    path = files.named(given)
    if not path.is_file():
        raise InputError(f"schedule is '{given}'{where}: neither {AUTO} nor {WRITTEN}, and no file of that name")
    return script_of(path) if _is_script(path) else path


def _is_script(path: Path) -> bool:
    """Whether a file has a script; a database has many."""
    with files.reading(path):
        content = path.read_bytes()
    return b"named_sequence" in content and not content.startswith(DATABASE)
