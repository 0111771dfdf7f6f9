"""The layout rules: imports go down and in no circle, every registered name loads, every pass is documented."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from itertools import groupby
from pathlib import Path

import pytest
from xdsl.transforms import get_all_passes

import compiler
from compiler import universe
from compiler.fuzz import scripts as random_scripts
from compiler.schedule.declarations import example_script
from compiler.schedule.primitives import PRIMITIVES
from compiler.targets import registry
from strata.passes import PIPELINES, parse_passes

ROOT = Path(__file__).parents[3] / "compiler"
ORDER = [
    "support",
    "types",
    "certificate",
    "examples",
    "affine",
    "dialects",
    "program",
    "graph",
    "intrinsics",
    "te",
    "alternatives",
    "frontends",
    "interpret",
    "analysis",
    "schedule",
    "recipes",
    "passes",
    "lowering",
    "targets",
    "universe",
    "pipeline",
    "opt",
    "space",
    "database",
    "driver",
    "autotune",
    "torch_backend",
    "explain",
    "report",
    "view",
    "bench",
    "fuzz",
    "cli",
    "__main__",
    "filecheck",
    "lsp",
    "reduce",
]
EXCEPTIONS = {"schedule": "lowering.te_to_loop", "cli": "lsp.server.serve"}
"""A schedule of a te function begins with its loops; a command starts the language server, which reads FileCheck tests.
"""


EDGES: dict[str, set[str]] = {
    "targets/cpu/kernel.py": {"lowering.low_to_llvm.signature.Workspace", "lowering.low_to_llvm.signature.symbol"},
    "targets/cpu/library/description.py": {"lowering.low_to_llvm.signature.Workspace"},
    "targets/cpu/library/loading.py": {"lowering.low_to_llvm.signature.Workspace"},
    "targets/cpu/load.py": {
        "lowering.low_to_llvm.emit",
        "lowering.low_to_llvm.signature.Workspace",
        "lowering.low_to_llvm.signature.is_written",
        "lowering.low_to_llvm.signature.takes_threads",
        "lowering.low_to_llvm.signature.workspace",
    },
}
"""What targets import from lowerings: the edge to LLVM, and what it says of the code that it has emitted."""
TARGETS = {"c", "cpu", "cuda", "simt"}
FILES = sorted(ROOT.rglob("*.py"))
ROOMS = {room: list(paths) for room, paths in groupby(FILES, lambda path: path.relative_to(ROOT).parts[0])}
"""The files of each room."""
MOST_LINES = 60
"""The most lines of a function."""


def name_of(path: Path) -> str:
    """The name of a file's module, without `compiler.` in front."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def imported(text: str) -> tuple[str, ...]:
    """The names that a file imports, wherever in it and under whatever condition."""
    return tuple(_imported(text))


def _imported(text: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0 and node.module, "imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def imports_of(text: str) -> list[str]:
    """What a file imports of ours, without `compiler.` in front."""
    return [name.removeprefix("compiler.") for name in imported(text) if name.startswith("compiler.")]


def upward(room: str, text: str) -> list[str]:
    """The imports of a file in a room that do not go down."""
    rank = ORDER.index(room)
    collected = [name for name in imports_of(text) if ORDER.index(name.split(".")[0]) > rank]
    return [name for name in collected if not name.startswith(EXCEPTIONS.get(room, "-"))]


Graph = dict[str, set[str]]


def graph_of(texts: Mapping[str, str]) -> Graph:
    """The imports among modules, by their texts."""
    return {name: {_module(actual, texts) for actual in imports_of(text)} - {name} for name, text in texts.items()}


def circles(graph: Graph) -> set[frozenset[str]]:
    """The sets of modules that reach each other."""
    reached = {name: _reached(graph, name) for name in graph}
    joined = {name: frozenset(n for n in names if name in reached[n]) for name, names in reached.items()}
    return {names for names in joined.values() if names}


def _reached(graph: Graph, start: str) -> set[str]:
    """The modules that one imports, and those that they import."""
    actual, queue = set[str](), [start]
    while queue:
        new = graph.get(queue.pop(), set()) - actual
        actual |= new
        queue += new
    return actual


def _module(imported: str, modules: Mapping[str, str]) -> str:
    """The module that an import is of: the name is a module's, or stands in one."""
    return imported if imported in modules else imported.rpartition(".")[0]


OUTSIDE = ("benchmarks", "tests", "tools", "examples")


@pytest.mark.parametrize("room", ROOMS)
def test_imports_go_down(room: str) -> None:
    for path in ROOMS[room]:
        text = path.read_text("utf-8")
        outside = [
            name for name in imported(text) if name.split(".")[0] in ("benchmarks", "tests", "tools", "examples")
        ]
        private = [n for n in imports_of(text) if any(part[0] == "_" and part[:2] != "__" for part in n.split("."))]
        assert outside == [] and private == [], path
        if room != "__init__.py":
            assert upward(room.removesuffix(".py"), text) == [], path
        if room == "targets":
            own = path.relative_to(ROOT).parts[1]
            targets = {name.split(".")[1] for name in imports_of(text) if name.startswith("targets.")} & TARGETS
            assert own not in TARGETS or targets <= {own}, "targets do not import each other"
            edges = {name for name in imports_of(text) if name.startswith("lowering.")}
            assert edges <= EDGES.get(str(path.relative_to(ROOT)), set())


@pytest.mark.parametrize(
    "text",
    [
        "from compiler.lowering.te_to_loop import TeToLoopPass",
        "from compiler import lowering",
        "import compiler.lowering",
        "def f():\n    from compiler import affine, lowering",
    ],
)
def test_an_upward_import_is_seen(text: str) -> None:
    assert len(upward("dialects", text)) == 1
    assert upward("targets", text) == []


def test_there_are_no_circles_of_files() -> None:
    assert circles(graph_of({name_of(path): path.read_text("utf-8") for path in FILES})) == set()


BACK = ["import compiler.a", "from compiler import a", "def f():\n    from compiler.a import x"]


@pytest.mark.parametrize("back", BACK)
def test_a_circle_is_seen(back: str) -> None:
    texts = {"a": "from compiler.b import y", "b": "from compiler.c import z", "c": "", "d": "import compiler.a"}
    assert circles(graph_of(texts)) == set()
    assert circles(graph_of(texts | {"c": back})) == {frozenset("abc")}


@pytest.mark.parametrize("room", ROOMS)
def test_functions_are_short_and_what_is_public_has_a_docstring(room: str) -> None:
    for path in ROOMS[room]:
        text = path.read_text("utf-8")
        assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)
        tree = ast.parse(text)
        assert ast.get_docstring(tree), path
        nodes = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
        assert {node.name for node in nodes if (node.end_lineno or 0) - node.lineno >= MOST_LINES} == set(), path
        documented = {node.name for node in public(tree) if ast.get_docstring(node)}
        assert {node.name for node in public(tree)} - documented <= DECLARED, path


DECLARED = {
    "verify_",
    "print",
    "parse",
    "print_parameters",
    "parse_parameters",
    "apply",
    "schedule",
    "match_and_rewrite",
}
"""Methods that a class elsewhere declares, and documents."""


def public(node: ast.Module | ast.ClassDef) -> Iterator[ast.ClassDef | ast.FunctionDef]:
    """The classes, functions and methods that others may use."""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef | ast.FunctionDef) and not inner.name.startswith("_"):
            yield inner
            if isinstance(inner, ast.ClassDef):
                yield from public(inner)


STARTS = re.compile(r"subprocess|find_library|os\.(system|popen|exec|spawn|posix_spawn|fork)|shutil\.which")
STARTERS = {
    "filecheck/shell.py": "programs of absolute folders of the PATH that RUN lines name",
    "opt/bytecode.py": "mlir-opt of an absolute path, for bytecode",
    "bench/c_loops.py": "gcc of the PATH, where it is named as a contender",
    "targets/compilers.py": "gcc or clang of an absolute folder of the PATH, started in a temporary one",
    "support/processes.py": "workers, which look for modules where their parent does",
}
"""The files that start processes, or look for programs, and what keeps those of the current folder out."""


def test_processes_are_started_in_known_places() -> None:
    collected = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py") if STARTS.search(path.read_text("utf-8"))}
    assert collected == set(STARTERS)


def test_the_word_cuda_appears_in_targets_only() -> None:
    for path in ROOT.rglob("*.py"):
        assert "cuda" not in path.read_text("utf-8") or "targets" in path.parts


def questions(text: str) -> list[str]:
    """Where a file asks which target something is for: comparisons with a target's name, cases of a match, and tests
    whether a machine is a CPU or a GPU."""
    return [ast.unparse(node) for node in ast.walk(ast.parse(text)) if _asks(node)]


def _asks(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        named = any(_names(inner) for side in sides for inner in ast.walk(side))
        return named and any(re.search(r"target(\.name|_name)?$", ast.unparse(side)) for side in sides)
    if isinstance(node, ast.MatchValue):
        return _names(node.value)
    called = isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass")
    if called:
        kinds = ast.unparse(node.args[1])  # type: ignore[attr-defined]
        return re.search(r"\b(Gpu|Machine|CpuTarget|GpuTarget|CudaTarget|CTarget)\b", kinds) is not None
    return False


def _names(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value in (*TARGETS, *registry.TARGETS, registry.DEFAULT_GPU)


@pytest.mark.parametrize("room", ROOMS)
def test_only_targets_ask_which_target_it_is(room: str) -> None:
    for path in ROOMS[room]:
        assert "targets" in path.relative_to(ROOT).parts or questions(path.read_text("utf-8")) == [], path


@pytest.mark.parametrize(
    "text",
    [
        'x = 1 if target == "cpu" else 2',
        'if subject.target != "cuda": pass',
        'if options.target in ("c", "cpu"): pass',
        "isinstance(machine, Gpu)",
        "y = isinstance(task.machine, types.Machine | str)",
        'match target:\n    case "simt":\n        pass',
        "isinstance(target_named(name), GpuTarget)",
    ],
)
def test_a_question_is_seen(text: str) -> None:
    assert len(questions(text)) == 1
    assert questions('build(x, "cpu"); target = "cuda"; isinstance(x, Kernel); level == "cpu"') == []


@pytest.mark.parametrize("name", universe.DIALECTS | universe.UPSTREAM)
def test_dialects_load(name: str) -> None:
    assert universe.load((universe.DIALECTS | universe.UPSTREAM)[name]).name == name


@pytest.mark.parametrize("name", universe.our_passes())
def test_passes_load(name: str) -> None:
    actual = universe.find_pass(name)
    assert actual is not None
    assert actual.name == name
    assert actual.__doc__
    assert not actual.__doc__.startswith(f"{actual.__name__}("), "dataclass wrote this docstring"
    assert universe.our_passes()[name]


@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_parse(name: str) -> None:
    assert [p.name for p in parse_passes(name)] == PIPELINES[name].split(",")


def unlisted(room: Path) -> set[str]:
    """The files of a room that its map, the docstring of its __init__.py, does not name; a room may have no map."""
    text = ast.get_docstring(ast.parse((room / "__init__.py").read_text("utf-8"))) or ""
    if not re.search(r"^\w+\.py\b", text, re.MULTILINE):
        return set()
    return {path.name for path in room.glob("[!_]*.py")} - set(re.findall(r"\w+\.py\b", text))


@pytest.mark.parametrize("room", sorted(ROOT.rglob("__init__.py")), ids=lambda p: str(p.parent.relative_to(ROOT)))
def test_the_map_of_a_room_names_its_files(room: Path) -> None:
    assert unlisted(room.parent) == set()
    text = ast.get_docstring(ast.parse(room.read_text("utf-8"))) or ""
    assert all((room.parent / name).exists() for name in re.findall(r"^(\w+\.py)\b", text, re.MULTILINE))


def test_a_file_that_no_map_names_is_seen(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""A room.\n\none.py  the first\n"""\n')
    (tmp_path / "one.py").write_text("")
    assert unlisted(tmp_path) == set()
    (tmp_path / "two.py").write_text("")
    assert unlisted(tmp_path) == {"two.py"}


def test_the_map_names_every_room() -> None:
    text = (ROOT.parent / "docs" / "rooms.md").read_text("utf-8")
    entries = [path for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()]
    names = [f"compiler/{path.name}{'' if path.suffix else '/'}" for path in entries if path.name[0] != "_"]
    assert [name for name in names if not re.search(rf"^{re.escape(name)}\b|^{re.escape(name)} ", text, re.M)] == []


def lacking(name: str) -> list[str]:
    """What a primitive needs beside its declaration, and has not."""
    folder = Path(__file__).parents[2] / "filecheck" / "schedule"
    files = [f"{name}.mlir", f"{name}_reject.mlir"]
    steps = {step for step, _ in random_scripts.STEPS}
    return [file for file in files if not (folder / file).exists()] + ["a random step"] * (name not in steps)


@pytest.mark.parametrize("name", PRIMITIVES)
def test_a_primitive_is_tested(name: str) -> None:
    assert lacking(name) == []
    assert [path.stem for path in (ROOT / "schedule" / "primitives").rglob("[!_]*.py")].count(name) == 1


def test_a_primitive_without_tests_is_seen() -> None:
    assert lacking("skew") == ["skew.mlir", "skew_reject.mlir", "a random step"]


def test_only_replacements_hide_a_pass_of_xdsl() -> None:
    assert set(universe.our_passes()) & set(get_all_passes()) == set(universe.REPLACED)


def test_the_stock_tool_finds_us() -> None:
    ours = set(universe.our_passes()) - set(universe.REPLACED)
    assert {kind().name for kind in universe.UNIVERSE.all_passes.values()} == ours
    assert {make().name for make in universe.UNIVERSE.all_dialects.values()} == set(universe.DIALECTS)


def test_the_package_says_its_version() -> None:
    stated = tomllib.loads((ROOT.parent / "pyproject.toml").read_text("utf-8"))
    project = stated["project"]
    assert project["dynamic"] == ["version"]
    assert stated["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "compiler.__version__"}
    written = [path for path in FILES if f'"{compiler.__version__}"' in path.read_text("utf-8")]
    assert written == [ROOT / "__init__.py"], "one source of the version"
    newest = re.search(r"^## (\d[\d.]*)", (ROOT.parent / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None and newest[1] == compiler.__version__
    module, _, name = project["entry-points"]["xdsl.universe"]["strata"].partition(":")
    assert getattr(import_module(module), name).all_passes
    for script in project["scripts"].values():
        assert callable(universe.load(script))


def test_docstring_examples_round_trip() -> None:
    """Every op of our dialects has an example, which parses, verifies, and prints to what it was parsed from."""
    from compiler.pipeline.source import parse

    for name in universe.DIALECTS:
        for op in universe.load(universe.DIALECTS[name]).operations:
            primitive = PRIMITIVES.get(op.name.removeprefix("sched."))
            assert op.__doc__ and (primitive or "```mlir" in op.__doc__), op.name
            text = example_script(primitive) if primitive else op.__doc__.split("```mlir")[1].split("```")[0]
            module = parse(text)
            assert any(inner.name == op.name for inner in module.walk())
            assert str(parse(str(module))) == str(module)
