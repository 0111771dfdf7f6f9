"""`machine_for`: a machine by the name of its processor; `compiling_for`: compile for it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from compiler.support.errors import TargetError
from compiler.types.machines import MACHINES, VARIABLE, Machine, detect_machine, host, machine_facts

NATIVE = "native"
"""The name of the machine that `host` returns."""


def machine_for(cpu: str, features: str = "") -> Machine:
    """A machine by the name of its processor in MACHINES, or `native`, with further features or without some.

    `features` are LLVM's names as "+avx512vnni,-avx512bf16". The machine has the cores of this one. Raises TargetError
    for an unknown name or feature, and for features of another form.
    """
    if cpu != NATIVE and cpu not in MACHINES:
        raise TargetError(f"there is no processor '{cpu}' (there are {NATIVE}, {', '.join(MACHINES)})")
    here = detect_machine()
    row = host() if cpu == NATIVE else replace(MACHINES[cpu], name=f"{here.name} as {cpu}", cores=here.cores)
    return _with_features(row, features) if features else row


def _with_features(machine: Machine, features: str) -> Machine:
    words = [word.strip() for word in features.split(",")]
    wrong = next((word for word in words if not re.fullmatch(r"[+-][a-z0-9][a-z0-9.-]*", word)), None)
    if wrong is not None:
        raise TargetError(f"'{wrong}' is not a feature with a sign, as in +avx512vnni,-avx512bf16")
    rows = [row for row in (*MACHINES.values(), detect_machine()) if row.architecture == machine.architecture]
    known = machine.present.union(word[1:] for row in rows for word in row.features.split(",") if word)
    unknown = next((word[1:] for word in words if word[1:] not in known), None)
    if unknown is not None:
        raise TargetError(f"there is no feature '{unknown}' (there are {', '.join(sorted(known))})")
    names, lacking = set(machine.present), {w[1:] for w in machine.features.split(",") if w.startswith("-")}
    for word in words:
        if word[0] == "+":
            added = _implied(word[1:])
            names, lacking = names | added, lacking - added
        else:
            removed = {name for name in known if word[1:] in _implied(name)}
            names, lacking = names - removed, lacking | removed
    bits = 512 if names & {"avx512f", "sve"} else 256 if "avx2" in names else 128
    return replace(
        machine,
        name=f"{machine.name} {','.join(words)}",
        features=",".join([*(f"+{name}" for name in sorted(names)), *(f"-{name}" for name in sorted(lacking))]),
        vector_bits=min(bits, machine.vector_bits),
        registers=32 if bits == 512 or machine.architecture != "x86_64" else 16,
    )


_NEEDED = {"avx512f": ("avx2", "fma", "f16c"), "avx2": ("avx",), "fma": ("avx",), "f16c": ("avx",), "avx": ("sse4.2",)}


def _implied(feature: str) -> set[str]:
    """A feature with those that it needs: `avx512vnni` needs avx512f, which needs avx2, fma and f16c."""
    needed: tuple[str, ...] = _NEEDED.get(feature, ())
    if feature.startswith(("avx512", "avx10")) and feature != "avx512f":
        needed = ("avx512f",)
    elif feature in ("vaes", "vpclmulqdq") or (feature.startswith("avx") and not needed):
        needed = ("avx2",)
    elif feature.startswith("amx-") and feature != "amx-tile":
        needed = ("amx-tile",)
    return {feature}.union(*map(_implied, needed))


@contextmanager
def compiling_for(machine: Machine) -> Iterator[None]:
    """Compile for a machine in a context, in this process and in those that it starts: set STRATA_MACHINE."""
    if machine == host():
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = machine_facts(machine)
    try:
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
