"""The C text of a library's functions: checks of the caller's memory, then calls of the native code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

import numpy as np

from compiler.targets.arguments import Argument
from compiler.targets.cpu.library.description import (
    HEADER_BYTES,
    CodeVersion,
    Description,
    NativeCall,
    Pointer,
    alignment,
)
from compiler.targets.cpu.library.features import hardware_bits, required, states
from compiler.targets.cpu.library.statuses import STATUSES
from compiler.targets.cpu.library.weights import Layout
from compiler.types.machines import PR_SVE_GET_VL

MOST_THREADS = 4096
"""The largest number of threads of a call."""


@dataclass(frozen=True)
class Stored:
    """The storage of a library's weights: in the library or in a safetensors file beside it. is_filled: the export
    stored each code version's computed block of constants instead of the weights. offsets: of each weight, in the order
    of the description, or of each block. file: the layout of the file; None for the library itself. checksum: of the
    file's bytes; 0 without a file."""

    offsets: Sequence[int]
    is_filled: bool
    file: Layout | None = None
    checksum: int = 0


def source(description: Description, stored: Stored | None, certificate: str = "") -> str:
    """Write the C text of a library's functions. `stored` are its weights; None if the caller has them. certificate:
    the digest of its certificate; "" without one."""
    d = description
    in_file = stored is not None and stored.file is not None
    replaced = {
        "includes": _includes(d, in_file),
        "header_bytes": str(HEADER_BYTES),
        "most_threads": str(MOST_THREADS),
        "arrays": "\n".join(_facts(kind, getattr(d, kind)) for kind in ("inputs", "outputs", "weights")),
        "interface": quoted(d.json()),
        "features": _helpers(d),
        "versions": "\n".join([*_versions(d), _table(d)]),
        "stored": _stored(d, stored),
        "prepare_file": _template("file.c") if in_file else "",
        "messages": "\n".join(f"    case {d.prefix}_{s.name}: return {quoted(s.message)};" for s in STATUSES),
        "file_bytes": str(stored.file.bytes) if stored is not None and stored.file is not None else "",
        "checksum": f"UINT64_C({stored.checksum})" if stored is not None else "",
        "certificate": certificate,
        "name": d.name,
        "PREFIX": d.prefix,
    }
    text = _template("template.c")
    for name, value in replaced.items():
        text = text.replace(f"@{name}@", value)
    return text


@cache
def _template(name: str) -> str:
    return (Path(__file__).parent / name).read_text()


def quoted(text: str) -> str:
    """The UTF-8 bytes of a text as C string literals of at most 80 bytes, one a line, which C concatenates; `""` for an
    empty text."""
    escaped = [
        f"\\{byte:03o}" if byte < 32 or byte > 126 or chr(byte) in '"\\?@' else chr(byte) for byte in text.encode()
    ]
    lines = ["".join(escaped[first : first + 80]) for first in range(0, len(escaped), 80)] or [""]
    return "\n    ".join(f'"{line}"' for line in lines)


def _includes(d: Description, in_file: bool) -> str:
    is_text = all(version.text for version in d.versions)
    by_auxv = "#include <sys/auxv.h>\n#include <sys/prctl.h>"
    lines = [] if is_text else ["#include <cpuid.h>" if _is_x86(d.versions[0]) else by_auxv]
    if any(v.tiles for v in d.versions):
        lines += ["#include <sys/syscall.h>", "#include <unistd.h>"]
    if in_file:
        lines += [f"#include <{name}.h>" for name in ("fcntl", "sys/mman", "sys/stat", "unistd")]
    return "".join(f"{line}\n" for line in dict.fromkeys(lines))


def _is_x86(version: CodeVersion) -> bool:
    """Whether a version is machine code for x86-64."""
    return version.machine.architecture == "x86_64" and not version.text


def _helpers(d: Description) -> str:
    """The C functions that versions need: tests of features, the request for tile registers, and serial parallel loops
    in a library for one thread."""
    features = _template("features.c") if any(map(_is_x86, d.versions)) else ""
    tiles = _template("tiles.c") if any(v.tiles for v in d.versions) else ""
    is_serial = d.threads == 1 and any("GOMP_parallel" in o.declared for v in d.versions for o in v.objects)
    return features + tiles + (_template("serial.c") if is_serial else "")


def _facts(kind: str, arguments: Sequence[Argument]) -> str:
    """The C table of the arrays of a kind, such as `inputs`: bytes and alignment of each, in order, and their count."""
    rows = [f"  {{{a.size}, {alignment(a)}}}, /* {comment(a.name)} */" for a in arguments]
    name = kind.upper()
    rows = rows or ["  {0, 1},"]
    return "\n".join(
        [f"#define {name}_COUNT {len(arguments)}", f"static const struct array {name}[] = {{", *rows, "};", ""]
    )


def comment(text: str) -> str:
    """A text for a C comment: in ASCII with escapes, on one line, without marks of comments (`/*`, `*/`) and of
    templates (`@`)."""
    pairs = {"*/": "*\\/", "/*": "/\\*", "\n": "\\n", "@": "\\x40"}
    plain = text.encode("ascii", "backslashreplace").decode()
    for mark, replacement in pairs.items():
        plain = plain.replace(mark, replacement)
    return plain


def _versions(d: Description) -> Iterable[str]:
    for number, version in enumerate(d.versions):
        yield f"/* Code for {version.machine.cpu}. */"
        functions = {call.symbol: call for call in (*version.preparations, version.run)}
        for position, call in enumerate(functions.values()):
            yield _declared(d, version, call, f"native_{number}_{position}")
        names = {symbol: f"native_{number}_{position}" for position, symbol in enumerate(functions)}
        yield _supported(version, number)
        yield _prepare(version, number, names)
        yield _run(d, version, number, names[version.run.symbol])


def _declared(d: Description, version: CodeVersion, call: NativeCall, name: str) -> str:
    """Return the C declaration of a native function as `name`; for a version of C text the definition of a function
    `name` that calls it and ignores the workspace."""
    types = [_c_type(d, parameter) for parameter in call.parameters]
    if not version.text:
        arguments = ", ".join([*types, "void *", *["int32_t"] * call.takes_threads])
        return f"extern void {name}({arguments}) __asm__({quoted(call.symbol)});"
    parameters = ", ".join([*(f"{type} a{n}" for n, type in enumerate(types)), "void *workspace"])
    arguments = ", ".join(f"a{n}" for n in range(len(types)))
    return f"static void {name}({parameters}) {{\n  (void)workspace;\n  {call.symbol}({arguments});\n}}"


def _c_type(d: Description, parameter: Pointer) -> str:
    """The type of a parameter of a native function: a scalar by value, or a pointer."""
    if parameter.kind == "input" and (argument := d.inputs[parameter.number]).by_value:
        return C_TYPES[argument.dtype.name]
    return "void *" if parameter.kind in ("output", "scratch") else "const void *"


C_TYPES = {
    "float64": "double",
    "float32": "float",
    "float16": "uint16_t",
    "bfloat16": "uint16_t",
    "bool": "uint8_t",
    **{f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""The C types of elements by numpy's names; 16-bit floats are their bits, truth values are 0 or 1."""


def _supported(version: CodeVersion, number: int) -> str:
    if version.text:
        return f"static int is_supported_{number}(void) {{ return 1; }}\n"
    if not _is_x86(version):
        first, second = (f"UINT64_C({bits})" for bits in hardware_bits(version.machine.present))
        words = f"(getauxval(AT_HWCAP) & {first}) == {first} && (getauxval(AT_HWCAP2) & {second}) == {second}"
        if version.machine.vector_scale:
            words += f" && (prctl({PR_SVE_GET_VL}) & 0xFFFF) == {version.machine.vector_bits // 8}"
        return f"static int is_supported_{number}(void) {{\n  return {words};\n}}\n"
    names = version.machine.present
    rows = [f"  {{{bit.leaf}u, {bit.subleaf}u, {bit.register}, {bit.bit}}}," for bit in required(names)]
    return "\n".join(
        [
            f"static const struct bit FEATURES_{number}[] = {{",
            *(rows or ["  {1u, 0u, 3, 25}, /* SSE */"]),
            "};",
            f"static int is_supported_{number}(void) {{",
            f"  return has_features(FEATURES_{number}, sizeof FEATURES_{number} / sizeof FEATURES_{number}[0], "
            f"UINT64_C({states(names)}));",
            "}",
            "",
        ]
    )


def _pointer(parameter: Pointer) -> str:
    """Return the C expression of a pointer argument of a native function."""
    return {
        "input": f"inputs[{parameter.number}]",
        "output": f"outputs[{parameter.number}]",
        "weight": f"weights[{parameter.number}]",
        "constant": f"constants + {parameter.number}",
        "scratch": f"scratch + {parameter.number}",
    }[parameter.kind]


def _call(function: str, call: NativeCall, pointers: Iterable[str], workspace: str, threads: str) -> str:
    arguments = [*pointers, workspace, *([threads] if call.takes_threads else [])]
    return f"  {function}({', '.join(arguments)});"


def _prepare(version: CodeVersion, number: int, names: Mapping[str, str]) -> str:
    """Return the C function that copies and computes the constants of version number `number`, on one thread; `names`
    has the C names of its native functions by symbol."""
    bytes = version.scratch_bytes
    lines = [f"static int prepare_{number}(const void *const *weights, char *constants) {{"]
    lines.append("  (void)weights, (void)constants;")
    if bytes:
        rounded = -(-bytes // HEADER_BYTES) * HEADER_BYTES
        lines += [f"  char *scratch = aligned_alloc(64, {rounded});", "  if (!scratch) return @PREFIX@_MEMORY;"]
    workspace = f"scratch + {version.scratch_workspace}" if bytes else "0"
    if version.tiles:
        lines.append(f"  if (!permit_tiles()) return {'(free(scratch), ' if bytes else '('}@PREFIX@_PROCESSOR);")
    lines += [f"  memcpy(constants + {offset}, weights[{n}], WEIGHTS[{n}].bytes);" for n, offset in version.copies]
    for call in version.preparations:
        lines.append(_call(names[call.symbol], call, map(_pointer, call.parameters), workspace, "1"))
    lines += ["  free(scratch);"] if bytes else []
    return "\n".join([*lines, "  return @PREFIX@_OK;", "}", ""])


def _run(d: Description, version: CodeVersion, number: int, function: str) -> str:
    """Return the C function that runs version number `number` by the native function `function`."""

    def value(parameter: Pointer) -> str:
        if parameter.kind == "input" and (argument := d.inputs[parameter.number]).by_value:
            return f"*(const {C_TYPES[argument.dtype.name]} *)inputs[{parameter.number}]"
        return _pointer(parameter)

    head = (
        f"static void run_{number}(const char *constants, const void *const *inputs, void *const *outputs, "
        "void *workspace, int threads) {"
    )
    unused = "  (void)constants, (void)inputs, (void)outputs, (void)threads;"
    pointers = map(value, version.run.parameters)
    return "\n".join([head, unused, _call(function, version.run, pointers, "workspace", "threads"), "}", ""])


def _table(d: Description) -> str:
    """The C table of the versions, in order: a number that tells them apart, sizes in bytes, processor and
    functions."""
    rows = []
    for number, v in enumerate(d.versions):
        sizes = f"{v.constant_bytes}, {v.workspace.shared}, {v.workspace.private}"
        functions = f"is_supported_{number}, prepare_{number}, run_{number}, (void (*)(void))native_{number}"
        position = len({call.symbol for call in v.preparations} - {v.run.symbol})
        rows.append(f"  {{UINT64_C({magic(d, v)}), {sizes}, {quoted(v.machine.cpu)}, {functions}_{position}}},")
    return "\n".join(["static const struct version VERSIONS[] = {", *rows, "};", ""])


def magic(d: Description, version: CodeVersion) -> int:
    """A hash of 64 bits of the interface of a library and of a version's code, preparations and layout of constants."""
    digest = sha256(repr((d.json(), version.copies, version.preparations)).encode())
    for payload in (version.text.encode(), *(file.code for file in version.objects)):
        digest.update(payload)
    return int.from_bytes(digest.digest()[:8], "little")


def _stored(d: Description, stored: Stored | None) -> str:
    """Return the C function `prepare_stored` that fills constants with the weights in the library, with its table and
    helpers. For weights in a file, whose helpers it has too, and if `stored` is None, it only returns the status NULL.
    """
    head = "static int prepare_stored(const struct version *v, void *constants) {"
    if stored is None:
        return "\n".join([head, "  (void)v, (void)constants;", "  return @PREFIX@_NULL;", "}"])
    table = f"static const size_t STORED[] = {{{', '.join(map(str, stored.offsets)) or '0'}}};"
    filling = _template("filled.c" if stored.is_filled else "raw.c")
    if stored.file is not None:
        return "\n".join([table, filling, head, "  (void)v, (void)constants;", "  return @PREFIX@_NULL;", "}"])
    label = weights_label(d.name)
    directives = (".section .rodata", ".balign 64", f".globl {label}", f".hidden {label}", f"{label}:")
    asm = "\\n".join([*directives, f'.incbin \\"{label}\\"', ".previous"])
    call = f"  return prepare_from(v, {label}, constants);"
    return "\n".join([table, filling, f'__asm__("{asm}");', f"extern const char {label}[];", head, call, "}"])


def checksum(path: Path) -> int:
    """The checksum of the bytes of the file `path`, which the C function `checksum_of` computes too: the sum modulo
    2**64 of its 8-byte words, the last padded with zeros, each mixed with its position."""
    total, first = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            words = np.frombuffer(chunk + bytes(-len(chunk) % 8), np.uint64)
            mixed = words + np.arange(first, first + len(words), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
            total += int((mixed * np.uint64(0xFF51AFD7ED558CCD)).sum(dtype=np.uint64))
            first += len(words)
    return total % (1 << 64)


_CHUNK = 1 << 22
"""The bytes of a file that are read at a time, a multiple of 8."""


def weights_label(name: str) -> str:
    """The symbol of the weights in a library, and the name of the file from which the C compiler includes them."""
    return f"weights_of_{name}"
