"""`export`: a program as a library, with a version for each of several processors."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from compiler.certificate.text import Certificate, VersionCertificate, version
from compiler.driver.building import compile_program
from compiler.driver.c_library import export_c
from compiler.driver.caching import CompiledProgram
from compiler.driver.choice.mode import ScheduleMode, schedule_mode
from compiler.driver.choice.recorded_machine import recorded_machine
from compiler.driver.recipe import text_of
from compiler.support.errors import InputError
from compiler.support.files import to_path
from compiler.targets.cpu.library.description import combined_weights, describe
from compiler.targets.cpu.library.export import (
    TEXTS,
    Weights,
    check_library_words,
    export_program,
    library_name,
    native_texts,
    write_texts,
)
from compiler.types.machines import Machine
from compiler.types.selection import NATIVE, compiling_for, machine_for


def export(
    x: object,
    path: str | os.PathLike[str],
    weights: str = "library",
    cpus: Sequence[str] = (NATIVE,),
    features: str = "",
    library: str | None = None,
    threads: int | None = None,
    policy: str = "contract",
    name: str | None = None,
    constants: Mapping[str, object] | None = None,
    schedule: object = None,
    error: float | None = None,
) -> list[Path]:
    """Compile a program, and write it as a library for callers without Python, with headers in C and C++.

    path: `libNAME.so`, `.a` or `.o`, `.h` for the header alone, or a folder for all of these and the texts; `.ll` and
    `.s` for the machine code as text; `.c` for a C file of which any C compiler makes the library. weights: where the
    weights are: in the `library`, in a `file` NAME.safetensors beside it, or `none` (the caller has them). cpus: the
    processors, best first; the library chooses at run time. They are LLVM's names of `MACHINES`, or `native`;
    `features` adds and removes features of each. With a database as `schedule` each version takes records of its own
    (docs/export.md); `CPU=NAME` states the machine of these. library: the prefix of the functions, by default the
    file's name. The other arguments are those of `build`. Nothing is run here, so that programs for other processors
    can be exported. Returns the paths of the files. Raises InputError for a wrong path or word and for options that a
    `.c` file does not take, TargetError for an unknown processor and without a C compiler, and the errors of `build`
    for a program, constants or a schedule that it refuses.

    >>> A = te.placeholder((4,), name="A")
    >>> f = te.function("double", [A], te.nn.add(A, A, name="B"))
    >>> [path.name for path in export(f, "libdouble.so", cpus=("haswell", "x86-64"), threads=1)]
    ['double.h', 'double.hpp', 'libdouble.so', 'double.certificate.json']
    """
    if isinstance(cpus, str) or not cpus or len(set(cpus)) != len(cpus):
        raise InputError(f"cpus is {cpus!r}, expected distinct names of processors")
    way = schedule_mode(schedule)
    file = to_path(path)
    check_library_words(file, weights)
    prefix, suffix = library_name(file, library), file.suffix
    if suffix == ".c":
        if (weights, tuple(cpus), features, threads in (None, 1), error) != ("library", (NATIVE,), "", True, None):
            sentence = f"{file.name} has its weights, and is for any processor and one thread: state none of these"
            raise InputError(sentence)
        return export_c(x, file, prefix, policy, name, constants, schedule)
    programs, versions, texts = list[CompiledProgram](), list[VersionCertificate](), dict[str, str]()
    for machine in [_machine(cpu, features, way) for cpu in cpus]:
        with compiling_for(machine):
            program = compile_program(x, threads, policy, name, constants, schedule, error)
            stem = file.stem if suffix else prefix
            stem = f"{stem}.{machine.cpu}" if len(cpus) > 1 else stem
            if not suffix or suffix in TEXTS:
                texts |= native_texts(stem, program.texts.main, program.texts.preparation, suffix)
            if suffix not in TEXTS:
                versions.append(version(text_of(program.texts.main["certificate"])))
            programs.append(program)
    if suffix in TEXTS:
        return write_texts(texts, file.parent)
    arrays, renamed = combined_weights([(program.linked, program.arrays) for program in programs])
    description = describe(prefix, renamed)
    certificate = Certificate(description.name, versions, error=error)
    return export_program(description, Weights(arrays, False, weights), file, certificate, texts)


def _machine(word: str, features: str, way: ScheduleMode) -> Machine:
    """The machine of a version by its word `CPU` or `CPU=NAME`, under the name whose records it takes. Raises
    InputError for a NAME without records, or if `way` is no database, and TargetError for an unknown processor."""
    cpu, _, name = word.partition("=")
    machine = machine_for(cpu, features)
    if isinstance(way, Path):
        return recorded_machine(machine, cpu, way, name)
    if name:
        raise InputError(f"'{word}' names records: state a database as schedule=")
    return machine
