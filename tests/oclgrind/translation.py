"""The CUDA text of kernels as OpenCL C, line by line: a report about a line is about that line of the text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from compiler.targets.clike.numbers import NUMBERS
from compiler.targets.clike.operations import FUNCTIONS
from compiler.targets.cuda.emit import Launch
from compiler.targets.cuda.helpers import COPIES, EXTREMA, POWERS, WARPS
from tests.host_cuda import POOL
from tests.oclgrind.narrow import converted, widened
from tests.oclgrind.warps import together

PRELUDE = Path(__file__).with_name("cuda.cl").read_text()
KERNEL = "// grid "
SCRATCH = 24
"""The bytes for each thread of a launch through which threads hand values to each other."""
Extents = tuple[int, int, int]
_WORDS = frozenset(
    """kernel local global private constant generic half uint ulong ushort uchar pipe barrier image1d_t image2d_t
    event_t sampler_t read_only write_only read_write vec_step scratch copies as_float as_uint isinf overloaded shuffled
    factor multiplied odd get_local_id get_group_id get_local_size""".split()  # noqa: SIM905
)
"""What programs may call a buffer, and OpenCL C or the prelude has another meaning for."""
_IDENTIFIER = re.compile(r"\b[A-Za-z_]\w*\b")
_PARAMETER = re.compile(r"(const )?([\w ]+?)\* __restrict__ (\w+)")
_TEMPLATE = re.compile(r"template <class T> .* T (\w+)\(([^)]*)\) \{ (return .*;) \}")
_CALL = re.compile(rf"\b({'|'.join(NUMBERS)})<([\w ]+)>\(")
_IN_POOL = re.compile(r"^(  )(.* \(\*(\w+)\).*|.*\* (\w+)) = reinterpret_cast<(.*)>\((pool \+ \d+)\);$", re.MULTILINE)
_CONSTANT = re.compile(r"^  const (.*)\* (\w+) = reinterpret_cast<.*>\((\w+)\);$", re.MULTILINE)
_DEPTH = 64
"""The depth of recursion, of a function that halves a number of 64 bits each time."""
_LINKAGE = 'extern "C" '
_POSITIONS = {"threadIdx": "get_local_id", "blockIdx": "get_group_id"}


def _renamed(name: str) -> str:
    return f"{name}_" if name in _WORDS else name


def _renamed_words(text: str) -> str:
    return _IDENTIFIER.sub(lambda match: _renamed(match[0]), text)


@dataclass(frozen=True)
class Translation:
    """OpenCL C, and the launches of its kernels: name, grid, block, positions of buffers, and whether a buffer of
    SCRATCH bytes for each thread follows."""

    source: str
    launches: tuple[tuple[str, Extents, Extents, tuple[int, ...], bool], ...]


def translated(text: str, launches: Sequence[Launch]) -> Translation:
    """OpenCL C for a text: its own lines numbered from 1, behind the prelude."""
    for helper in (*WARPS.values(), *COPIES.values(), *EXTREMA.values(), *POWERS.values()):
        text = text.replace(helper, "\n" * helper.count("\n"))
    text = widened(text)
    head, *kernels = re.split(rf"(?=^{re.escape(KERNEL)})", text, flags=re.MULTILINE)
    by_name = {launch.name: launch for launch in launches}
    parts = [_head(head, text), *(_kernel(part, by_name[_name(part)]) for part in kernels)]
    functions = "".join(f"#define {name}f {name}\n" for name in sorted(set(FUNCTIONS.values())))
    source = f'#line 1 "cuda.cl"\n{functions}{PRELUDE}#line 1 "text"\n{_spelled("".join(parts))}'
    exchanging = {_name(kernel) for kernel in kernels if exchanges(kernel)}
    return Translation(
        source, tuple((_renamed(o.name), o.grid, o.block, o.arguments, o.name in exchanging) for o in launches)
    )


def exchanges(kernel: str) -> bool:
    """Whether threads of a warp hand values to each other."""
    return any(word in kernel for word in ("__shfl_xor_sync(", "load_matrices<", "load_transposed<", "multiply_add("))


def _name(kernel: str) -> str:
    return kernel.split("\n", 2)[2].partition("(")[0]


# --- constants and helpers --------------------------------------------------------------------------------------------


def _head(head: str, text: str) -> str:
    types = _template_types(head, text)
    return "\n".join(_head_line(line, types) for line in head.split("\n"))


def _template_types(head: str, text: str) -> dict[str, set[str]]:
    """The types that a text uses each of its templates with; what a template calls it calls with its own."""
    types = {name: set(re.findall(rf"\b{name}<([\w ]+)>", text)) for name in NUMBERS}
    for match in reversed(list(_TEMPLATE.finditer(head))):
        for callee in NUMBERS:
            if re.search(rf"\b{callee}\(", match[3]):
                types[callee] |= types[match[1]]
    return types


def _head_line(line: str, types: dict[str, set[str]]) -> str:
    if line.startswith("#include"):
        return ""
    match = _TEMPLATE.match(line)
    if match is None:
        return _renamed_words(line.replace("__device__ const ", "__constant__ "))
    return " ".join(_instance(match, type_) for type_ in sorted(types[match[1]]))


def _instance(match: re.Match[str], type_: str) -> str:
    """The definition of a template for a type. OpenCL C has no recursion: a chain of functions stands in its place."""
    name, parameters, body = match.groups()
    called = re.sub(rf"\b({'|'.join(NUMBERS)})\(", rf"\1_{_joined(type_)}(", body)
    instance = f"{name}_{_joined(type_)}"
    levels = range(_DEPTH, -1, -1) if f"{instance}(" in called else [0]
    definitions = []
    for level in levels:
        inner = re.sub(rf"\b{instance}\(", f"{instance}_{level + 1}(", called) if level < _DEPTH else "return (T)1;"
        definitions.append(_defined(f"{instance}_{level}" if level else instance, parameters, inner))
    return re.sub(r"\bT\b", type_, " ".join(definitions))


def _defined(name: str, parameters: str, body: str) -> str:
    return f"T {name}({parameters}); T {name}({parameters}) {{ {body} }}"


def _joined(types: str) -> str:
    return re.sub(r"\W+", "_", types)


# --- kernels ----------------------------------------------------------------------------------------------------------


def _kernel(text: str, launch: Launch) -> str:
    comment, first, signature, body = _renamed_words(text).split("\n", 3)
    name, _, parameters = signature.partition("(")
    spaces = _address_spaces(parameters, body)
    body = converted(parameters, re.sub(_CALL, lambda match: f"{match[1]}_{_joined(match[2])}(", body))
    parameters = _PARAMETER.sub(_parameter, parameters)
    if exchanges(body):
        parameters = parameters.replace(") {", ", global ulong* scratch) {")
    if "wait_for_copies();" in body or "copy_async<" in body:
        parameters += " Copies copies; copies.count = copies.group = 0;"
    shape = ", ".join(map(str, launch.block))
    first = f"{first.removeprefix(_LINKAGE)} __attribute__((reqd_work_group_size({shape})))"
    return "\n".join([comment, first, f"{name}({parameters}", _body(body, launch, spaces)])


def _address_spaces(parameters: str, body: str) -> dict[str, str]:
    """The address space of each buffer of a kernel; those of a thread are left out."""
    spaces = {match[3]: "global" for match in _PARAMETER.finditer(parameters)}
    spaces |= {match[1]: "local" for match in re.finditer(r"__shared__ .*?(\w+)\[", body)}
    spaces |= {match[3] or match[4]: "local" for match in _IN_POOL.finditer(body)}
    return spaces | {match[2]: "constant" for match in _CONSTANT.finditer(body)}


def _parameter(match: re.Match[str]) -> str:
    element = "uchar" if match[2] == "bool" else match[2]  # no kernel of OpenCL takes pointers to bool
    return f"global {match[1] or ''}{element}* restrict {match[3]}"


def _body(body: str, launch: Launch, spaces: dict[str, str]) -> str:
    body = body.replace(POOL, f"__shared__ __align__(16) unsigned char pool[{launch.shared_bytes}];")
    body = _IN_POOL.sub(r"\1local \2 = (local \5)(\6);", body)
    body = _CONSTANT.sub(r"  constant const \1* \2 = (constant const \1*)(\3);", body)
    body = re.sub(r"reinterpret_cast<(.*?)>\(&(\w+)", partial(_pointer, spaces=spaces), body)
    for cuda, opencl in _POSITIONS.items():
        for number, side in enumerate("xyz"):
            body = body.replace(f"{cuda}.{side}", f"{opencl}({number})")
    body = re.sub(r"\bFragment<([^<>]+)>\{\}", r"(Fragment<\1>){0}", body)
    body = re.sub(r"\bFragment<([^<>]+)>\{([^{}]+)\}", r"(Fragment<\1>){{\2}}", body)
    body = re.sub(r"\bcopy_async<(\d+)>\(", r"copy_async(\1, ", body)
    body = re.sub(r"\bwait_for_groups<(\d+)>\(", r"wait_for_groups(\1", body)
    for load, transposed in (("load_matrices", "false"), ("load_transposed", "true")):
        body = re.sub(rf"\b{load}<([\w, ]+)>\((.*?)\);", rf"loaded<\1>(scratch, \2, {transposed});", body)
    return together(re.sub(r"\b(Fragment|loaded)<([\w, ]+)>", lambda match: f"{match[1]}_{_joined(match[2])}", body))


def _pointer(match: re.Match[str], spaces: dict[str, str]) -> str:
    return f"({spaces.get(match[2], '__private')} {match[1]})(&{match[2]}"


# --- types and literals -----------------------------------------------------------------------------------------------


def _spelled(text: str) -> str:
    text = re.sub(r"\bdouble\(", "(double)(", text)
    text = re.sub(r"\b(char|short|int|float)3\b", r"packed_\g<0>", text)
    text = re.sub(r"\b(u?)long long\b", r"\1long", text.replace("unsigned long long", "ulong"))
    return re.sub(r"\b(\d+U?)LL\b", r"\1L", text)
