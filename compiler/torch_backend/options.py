"""The `options=` of torch.compile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.driver.building import checked_error
from compiler.frontends.torch.report import Report
from compiler.support import validation
from compiler.support.errors import InputError
from compiler.support.files import to_path
from compiler.support.text import suggestion
from compiler.types.policies import policy_named


@dataclass(frozen=True)
class Options:
    """The options of compiling graphs.

    database: the path of the tuning records; each group is compiled with its best record. None: without records;
    trials are then in a temporary file.
    trials: the number of trials for each compiled part; missing ones are measured before it is compiled.
    threads: the number of threads of parallel loops; None for torch's.
    policy: the policy of floating-point operations: strict, contract or fast.
    error: the relative rounding error up to which groups may have other forms, as for `compiler.build`.
    report: gains an entry for each graph: its compiled operators, and the reasons for which others stay with torch.
    compare: time the first call of a graph beside eager mode, with a warning if it is slower; not with a report, with
    gradients, or for a graph with side effects.
    """

    database: Path | None = None
    trials: int = 0
    threads: int | None = None
    policy: str = "contract"
    error: float | None = None
    report: Report | None = None
    compare: bool = True


OPTIONS_OF_CPU = ("database", "trials", "threads", "error")
"""The options without an effect on GPUs."""
_NAMES = tuple(Options.__dataclass_fields__)


def options_of(given: object, mode: object = None) -> Options:
    """Convert the `options` (a mapping by field names, or None) and `mode` of torch.compile; a value None is the
    default. Raises InputError for unknown names and modes, invalid values, and a missing database without trials."""
    if mode not in (None, "default"):
        modes = f"only 'default', and options={{...}} with {', '.join(_NAMES)}: options={{'trials': 64}} tunes"
        raise InputError(f"the backend strata has no mode {mode!r}, {modes}")
    if given is None:
        return Options()
    if not isinstance(given, Mapping):
        raise InputError(f"options are a dictionary, not a {type(given).__name__}")
    for name in given:
        if name not in _NAMES:
            hint = suggestion(str(name), _NAMES, f" (there are {', '.join(_NAMES)})")
            raise InputError(f"the backend strata has no option {name!r}{hint}")
    checked: dict[str, Any] = {name: _CHECKS[name](value) for name, value in given.items() if value is not None}
    options = Options(**checked)
    if options.database is not None and not options.trials and not options.database.is_file():
        raise InputError(f"there is no database '{options.database}', and no trials are asked for that would make it")
    return options


def _database(value: Any) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"the option database is {value!r}, expected the path of a database")
    return to_path(value)


def _policy(value: Any) -> str:
    policy_named(value, InputError)
    return str(value)


def _report(value: Any) -> Report:
    if not isinstance(value, Report):
        raise InputError(f"the option report is {value!r}, expected a Report")
    return value


def _compare(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(f"the option compare is {value!r}, expected True or False")
    return value


_CHECKS = {
    "database": _database,
    "trials": lambda value: validation.integer("the option trials", value, 0, error=InputError),
    "threads": lambda value: validation.integer("the option threads", value, 1, error=InputError),
    "policy": _policy,
    "error": checked_error,
    "report": _report,
    "compare": _compare,
}
