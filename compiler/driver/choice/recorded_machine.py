"""`recorded_machine`: the machine of a library's version, under the name whose records of a database apply to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

from compiler.database.store import Database
from compiler.support.errors import InputError
from compiler.types.machines import Machine, detect_machine


def recorded_machine(machine: Machine, cpu: str, database: Path, name: str = "") -> Machine:
    """Return `machine` under the name whose records it uses: `name` if it is stated, else the first one with records of
    - its own name, such as `AMD EPYC as haswell` for code for haswell that was timed on this computer,
    - `... as haswell`, for code for it that was timed on another computer, the one with the most records,
    - this computer's name, if this is a haswell;
    `machine` unchanged if none has records.

    cpu: the processor by its name in MACHINES. Raises InputError for a stated name without records, and for a database
    that cannot be opened.
    """
    with Database(database, create=False) as opened:
        counts = Counter(record.key.machine for record in opened.records())
    if name:
        if name not in counts:
            names = ", ".join(map(repr, sorted(counts))) or "none"
            raise InputError(f"{database} has no records of the machine '{name}' (it has records of {names})")
        return replace(machine, name=name)
    here = detect_machine()
    emulated = sorted((n for n in counts if n.endswith(f" as {cpu}")), key=lambda n: -counts[n])
    real = [here.name] if here.cpu == cpu else []
    candidates = [machine.name, *(() if machine.name.partition(f" as {cpu}")[2] else (*emulated, *real))]
    return replace(machine, name=next((n for n in candidates if n in counts), machine.name))
