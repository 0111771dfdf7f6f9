"""`export_program`: write a library of a program, and its companions."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

from compiler.certificate.elf import sections
from compiler.certificate.text import SUFFIX, CallCertificate, Certificate, digest_of
from compiler.support.errors import InputError, TargetError
from compiler.support.files import write, write_errors
from compiler.targets.arguments import Array
from compiler.targets.compilers import binary_tool, run, run_compiler
from compiler.targets.cpu.kernel import LevelTexts
from compiler.targets.cpu.library.description import CodeVersion, Description, identifier
from compiler.targets.cpu.library.header import cpp_header, header
from compiler.targets.cpu.library.source import Stored, checksum, source, weights_label
from compiler.targets.cpu.library.weights import chunks, layout

SUFFIXES = (".so", ".a", ".o", ".h", ".c", ".ll", ".s")
"""The suffixes of libraries, of the header alone and of texts; a path without a suffix is a folder with all files."""
TEXTS = {".ll": "llvm", ".s": "asm"}
"""The levels of the texts of machine code, by the suffixes of their files."""
WAYS = ("library", "file", "none")
"""The places of a library's weights: in the library, in a file beside it, or with the caller."""
_C_FLAGS = ("-std=c11", "-O2", "-fPIC", "-c")


@dataclass(frozen=True)
class Weights:
    """The weights of a library: arrays by name, in the order of the description's weights, or with `is_filled` each
    version's block of constants, which was computed at the export; and `way`, one of WAYS."""

    arrays: Mapping[str, Array]
    is_filled: bool
    way: str


def library_name(file: Path, name: str | None) -> str:
    """Return the prefix of a library's functions, a C identifier made of `name`, else of the file's name without `lib`
    and all suffixes, or, for a path without a suffix, of its name as it is. Raises InputError for a text that
    `identifier` refuses."""
    default = file.name.partition(".")[0].removeprefix("lib") if file.suffix else file.name
    return identifier(default if name is None else name)


def check_library_words(path: Path, way: str) -> None:
    """Raise InputError for a path with a suffix that SUFFIXES lacks, and for a word `way` that WAYS lacks."""
    if way not in WAYS:
        raise InputError(f"weights is '{way}', expected {', '.join(WAYS)}")
    if path.suffix and path.suffix not in SUFFIXES:
        raise InputError(f"a library ends in {', '.join(SUFFIXES)} or is a folder, not '{path.name}'")


def export_program(
    description: Description,
    weights: Weights,
    path: Path,
    certificate: Certificate | None = None,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> list[Path]:
    """Write a library, its headers, its certificate and, for weights in a file, that file; return the paths.

    The suffix of the path is `.so` for a shared library, `.a` for a static one, `.o` for one object file, `.h` for the
    header alone; a folder gets a shared and a static library, the C text of their functions, and `texts` by the names
    of their files. Raises InputError for another suffix and for a path that cannot be written, TargetError without a C
    compiler or, where they are needed, objcopy and ar, and for weights that cannot be stored. certificate: None writes
    none.
    """
    check_library_words(path, weights.way)
    if path.suffix == ".h":
        write(path, [header(description, weights.way == "file" and bool(weights.arrays))])
        return [path]
    folder = path.parent if path.suffix else path
    with TemporaryDirectory(prefix="strata-") as temporary:
        work = Path(temporary)
        certificate = None if certificate is None else with_calls(certificate, description)
        made = _companions(description, weights, work, "" if certificate is None else certificate.digest)
        names = {path.suffix: path.name} if path.suffix else {s: f"lib{description.name}{s}" for s in (".so", ".a")}
        libraries = [_library(description, work, suffix, name) for suffix, name in names.items()]
        made += [*libraries, *([] if path.suffix else [work / f"{description.name}.c"])]
        if certificate is not None:
            made.append(_certified(certificate, libraries[0], work))
        paths = [_moved(file, folder / file.name) for file in made]
    return [*paths, *([] if path.suffix else write_texts(texts, folder))]


def native_texts(stem: str, main: LevelTexts, preparation: LevelTexts, suffix: str = "") -> dict[str, str]:
    """The texts of machine code by the names of their files, which begin with `stem`: `net.ll`, `net.s` and, for the
    preparation of a program of one function, `net.prepare.ll`. suffix: the only suffix to write; "" for all. main,
    preparation: texts by level; a level that is missing is skipped."""
    written = dict[str, str]()
    for end, level in TEXTS.items():
        for name, texts in ((stem, main), (f"{stem}.prepare", preparation)):
            text = texts.get(level) if suffix in ("", end) else None
            if text is not None:
                written[f"{name}{end}"] = text if isinstance(text, str) else text()
    return written


def write_texts(texts: Mapping[str, str], folder: Path) -> list[Path]:
    """Write texts by the names of their files into a folder; return the paths in order. Raises InputError if that
    fails."""
    for name, text in texts.items():
        write(folder / name, [text])
    return [folder / name for name in texts]


def export_source(d: Description, path: Path) -> list[Path]:
    """Write a library whose versions are C text as one C file, and its headers; return the paths. Raises InputError for
    a path that cannot be written."""
    own, texts = header(d, has_file=False), "\n".join(version.text for version in d.versions)
    text = source(d, None).replace(f'#include "{d.name}.h"\n', f"{texts}\n{own}\n")
    paths = [path.parent / f"{d.name}.h", path.parent / f"{d.name}.hpp", path]
    for file, content in zip(paths, (own, cpp_header(d, has_file=False), text), strict=True):
        write(file, [content])
    return paths


def with_calls(certificate: Certificate, d: Description) -> Certificate:
    """A certificate with the interface and the calls from which the C text of a library is written; `d` has as many
    versions as the certificate, in the same order."""
    pairs = zip(certificate.versions, d.versions, strict=True)
    versions = [replace(stated, calls=_calls(v), copies=[list(copy) for copy in v.copies]) for stated, v in pairs]
    return replace(certificate, versions=versions, interface=d.json())


def _calls(version: CodeVersion) -> list[CallCertificate]:
    """The preparations of a version, then the call of each run, by the symbols of its objects."""
    return [
        CallCertificate(call.symbol.removeprefix(version.prefix), [[p.kind, p.number] for p in call.parameters])
        for call in (*version.preparations, version.run)
    ]


def _certified(certificate: Certificate, library: Path, work: Path) -> Path:
    """Write a certificate with the hashes of the sections of the file `library` into the folder `work`; return its
    path."""
    contents = sections(library.read_bytes(), library.name)
    hashed = {name: digest_of(content) for name, content in contents.items()}
    path = work / f"{certificate.library}{SUFFIX}"
    path.write_text(replace(certificate, sections=hashed).text())
    return path


def _companions(d: Description, weights: Weights, work: Path, digest: str) -> list[Path]:
    """Write a library's sources into a folder and compile them; return the files to deliver with the library. digest:
    of its certificate; "" without one."""
    stored = None if weights.way == "none" or not weights.arrays else _store(d, weights, work)
    has_file = stored is not None and stored.file is not None
    (work / f"{d.name}.h").write_text(header(d, has_file))
    (work / f"{d.name}.hpp").write_text(cpp_header(d, has_file))
    (work / f"{d.name}.c").write_text(source(d, stored, digest))
    for number, version in enumerate(d.versions):
        _write_objects(version, number, work)
    run_compiler([*_C_FLAGS, f"{d.name}.c", "-o", "interface.o"], work, d.architecture)
    names = [f"{d.name}.h", f"{d.name}.hpp", *([f"{d.name}.safetensors"] if has_file else [])]
    return [work / name for name in names]


def _write_objects(version: CodeVersion, number: int, work: Path) -> None:
    """Write the object files of version number `number` into a folder, with the version's prefix in front of their
    symbols. Raises TargetError if the version has a prefix and there is no objcopy."""
    paths = [work / f"native{number}.{position}.o" for position in range(len(version.objects))]
    for path, code in zip(paths, version.objects, strict=True):
        path.write_bytes(code.code)
    if version.prefix:
        symbols = {name for code in version.objects for name in code.defined}
        options = [f"--redefine-sym={name}={version.prefix}{name}" for name in sorted(symbols)]
        tool = _binary_tool("objcopy", "a library of several versions", version.machine.architecture)
        for path in paths:
            run([tool, *options, path.name], work)


def _binary_tool(name: str, subject: str, architecture: str) -> str:
    tool = binary_tool(name, architecture)
    if tool is None:
        raise TargetError(f"{subject} is made by {name} of binutils, which is not on the PATH")
    return tool


def _store(d: Description, weights: Weights, work: Path) -> Stored:
    """Write the bytes of weights into a folder, for the C compiler or as a safetensors file; return their layout.
    Raises TargetError for a dtype that safetensors files lack."""
    placed = layout(weights.arrays, {"format": "strata", "library": d.name})
    in_file = weights.way == "file"
    path = work / (f"{d.name}.safetensors" if in_file else weights_label(d.name))
    with path.open("wb") as file:
        file.writelines(chunks(weights.arrays, placed))
    offsets = [placed.offsets[name] for name in weights.arrays]
    if not in_file:
        return Stored(offsets, weights.is_filled)
    return Stored(offsets, weights.is_filled, placed, checksum(path))


def _library(d: Description, work: Path, suffix: str, name: str) -> Path:
    objects = sorted(file.name for file in work.glob("*.o") if file.name != "whole.o")
    if suffix == ".so":
        (work / "exported").write_text(f"{{ global: {d.name}_*; local: *; }};\n")
        options = ["-shared", "-Wl,--version-script=exported", "-Wl,-z,text", "-Wl,-z,defs", "-Wl,-z,noexecstack"]
        run_compiler([*options, "-o", name, *objects, *_libraries(d)], work, d.architecture)
        return work / name
    run_compiler(["-r", "-nostdlib", "-o", "whole.o", *objects], work, d.architecture)
    tool = _binary_tool("objcopy", f"a library '{suffix}'", d.architecture)
    run([tool, "--wildcard", f"--keep-global-symbol={d.name}_*", "whole.o"], work)
    if suffix == ".o":
        (work / "whole.o").rename(work / name)
        return work / name
    (work / "archive").mkdir()
    (work / "whole.o").rename(work / "archive" / f"{d.name}.o")
    run([_binary_tool("ar", "a static library", d.architecture), "rcsD", name, f"archive/{d.name}.o"], work)
    return work / name


def _libraries(d: Description) -> Sequence[str]:
    """The linker options of the libraries that a shared library is linked with: libm, and libgomp if it uses OpenMP."""
    return ["-lm", *(["-lgomp"] if uses_openmp(d) else [])]


def uses_openmp(d: Description) -> bool:
    """Whether a library links the OpenMP runtime: it has parallel loops, and was scheduled for more than one thread."""
    return d.threads is not None and d.threads > 1


def _moved(file: Path, target: Path) -> Path:
    """Copy a file to `target` by an atomic replacement, so that processes keep the library that they use, and return
    `target`; a missing folder is created. Raises InputError if that fails."""
    with write_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        new = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            shutil.copyfile(file, new)
            os.replace(new, target)
        finally:
            new.unlink(missing_ok=True)
    return target
