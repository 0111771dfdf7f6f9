"""The `schedule` argument of `build`: by the rules, by a database, by a script, or as written."""

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

ScheduleMode: TypeAlias = str | Path | NamedSequenceOp
"""AUTO, WRITTEN, the path of a database, or a script."""
AUTO, WRITTEN = "auto", "written"
VARIABLE = "STRATA_SCHEDULE"
"""The environment variable with the default of the argument."""
DATABASE = b"SQLite format 3\0"
"""The first bytes of a database."""
EXPECTED = f"{AUTO}, {WRITTEN}, the path of a database, or a script: its text, its IR, or the path of its file"


def schedule_mode(stated: object) -> ScheduleMode:
    """Convert the `schedule` argument to AUTO, WRITTEN, the path of a database, or a script as IR; None is the value of
    STRATA_SCHEDULE, else AUTO. Raises InputError for an unknown value and for a path without a file, ScheduleError for
    text that is no script."""
    value = os.environ.get(VARIABLE) or AUTO if stated is None else stated
    if isinstance(value, Schedule):
        return script_of(value.script)
    if isinstance(value, ModuleOp | NamedSequenceOp) or (isinstance(value, str) and is_text(value)):
        return script_of(value)
    if value in (AUTO, WRITTEN):
        return str(value)
    where = f" ({VARIABLE})" if stated is None else ""
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"schedule is a {type(value).__name__}, expected {EXPECTED}")
    path = files.to_path(value)
    if not path.is_file():
        raise InputError(f"schedule is '{value}'{where}: neither {AUTO} nor {WRITTEN}, and no file of that name")
    return script_of(path) if _is_script(path) else path


def _is_script(path: Path) -> bool:
    """Whether a file is a script, not a database, whose records have scripts as well. Raises InputError if it cannot be
    read."""
    with files.read_errors(path):
        content = path.read_bytes()
    return b"named_sequence" in content and not content.startswith(DATABASE)
