"""The `strata` command line: what it prints, what it writes, and that no wrong input ends in a traceback."""

from __future__ import annotations

import importlib.util
import json
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import compiler
from compiler import te
from compiler.__main__ import main
from compiler.autotune import SearchTask
from compiler.bench import contenders
from compiler.cli import run as run_command
from compiler.examples import FILES as EXAMPLES
from compiler.examples import FOLDER as EXAMPLE_FOLDER
from compiler.opt import main as strata_opt
from compiler.support.errors import InputError, TargetError
from compiler.support.files import write
from compiler.targets.registry import gpu_of
from tests.said import Strata, refusal

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "examples" / "mm_exp_mm.mlir")
TINY = "matmul:5x6x7"

DIVIDES = """
func.func @divides(%A: tensor<4xi32>, %B: tensor<4xi32>, %P: tensor<4xi1>) -> (tensor<4xi32>, tensor<i32>) {
  %C = te.compute "C" [i = 4] (%a = %A[i] : tensor<4xi32>, %b = %B[i] : tensor<4xi32>,
      %p = %P[i] : tensor<4xi1>) -> tensor<4xi32> {
    %0 = arith.floordivsi %a, %b : i32
    %1 = arith.select %p, %0, %a : i32
    te.yield %1 : i32
  }
  %S = te.compute "S" [reduce i = 4] combine [add] (%c = %C[i] : tensor<4xi32>) -> tensor<i32> {
    te.yield %c : i32
  }
  func.return %C, %S : tensor<4xi32>, tensor<i32>
}
"""


def test_run_compares_and_times(strata: Strata) -> None:
    out = strata("run", EXAMPLE, "--seed", "3", "--calls", "2")
    assert "@mm_exp_mm: 3 inputs, 1 output, seed 3" in out
    assert "difference: " in out and "error" not in out and "time: " in out and "wrong" not in out


def test_run_takes_integers_truth_values_and_several_results(tmp_path: Path, strata: Strata) -> None:
    file = tmp_path / "divides.mlir"
    file.write_text(DIVIDES)
    out = strata("run", str(file))
    assert "3 inputs, 2 outputs" in out and "output 1" in out


def test_run_says_on_how_many_threads(tmp_path: Path, strata: Strata) -> None:
    file = tmp_path / "parallel.mlir"
    assert "thread" not in strata("run", EXAMPLE, "--calls", "1", "--threads", "2")
    scheduled = "te-to-loop,parallelize{block=T loop=m}"
    assert strata_opt([EXAMPLE, "-p", scheduled, "-o", str(file)]) == 0
    for threads, said in (("1", "on 1 thread ("), ("2", "on 2 threads (")):
        assert said in strata("run", str(file), "--calls", "1", "--threads", threads)
    assert "threads=100000: expected an integer from 1 to" in strata("run", str(file), "--threads", "100000", status=1)


DIES = """
func.func @dies(%A: memref<4xi64>) {
  %c0 = arith.constant 0 : index
  %a = memref.load %A[%c0] : memref<4xi64>
  %far = arith.constant 10000000000000 : i64
  %n = arith.muli %a, %far : i64
  %i = arith.index_cast %n : i64 to index
  memref.store %a, %A[%i] : memref<4xi64>
  func.return
}
"""


def test_a_low_program_that_dies_is_a_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dies.mlir"
    path.write_text(DIES, encoding="utf-8")
    assert main(["run", str(path)]) == 1
    assert refusal(capfd.readouterr().err).endswith(f": {path} died of SIGSEGV while it ran (Segmentation fault)")


def test_a_low_program_that_surely_leaves_a_buffer_is_not_built(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "outside.mlir"
    path.write_text(DIES.replace("%A[%i]", "%A[%c9]").replace("%far =", "%c9 = arith.constant 9 : index\n%far ="))
    for command in (["run"], ["build", "--emit", "asm"]):
        assert main([*command, str(path)]) == 1
        said = f"{path}:9:3: error: @dies: 'memref.store' leaves %A, memref<4xi64>: index 0 is 9"
        assert refusal(capsys.readouterr().err) == said


def test_run_says_that_a_result_is_wrong(monkeypatch: pytest.MonkeyPatch, strata: Strata) -> None:
    monkeypatch.setattr(run_command, "TOLERANCE", {})
    assert ": wrong" in strata("run", EXAMPLE, status=1)


def test_run_starts_below_te_too(tmp_path: Path, strata: Strata) -> None:
    for level in ("loop", "low"):
        file = tmp_path / f"{level}.mlir"
        assert main(["build", EXAMPLE, "--emit", level, "-o", str(file)]) == 0
        assert "not compared" in strata("run", str(file), "--calls", "1")


def test_differences_ignore_equal_infinities_and_nan() -> None:
    actual = np.array([1.0, np.inf, np.nan, 2.5], np.float32)
    assert run_command.difference(actual, np.array([1.0, 1e300, np.nan, 2.0])) == (0.5, 1e300)
    assert run_command.difference(np.array([np.nan]), np.array([1.0]))[0] == float("inf")


@pytest.mark.parametrize(
    ("level", "said"),
    [("te", "te.compute"), ("loop", "loop.for"), ("low", "scf.for"), ("llvm", "define"), ("asm", "ret")],
)
def test_build_prints_each_level(level: str, said: str, strata: Strata) -> None:
    assert said in strata("build", EXAMPLE, "--emit", level)


@pytest.mark.parametrize(("suffix", "said"), [(".ll", "define"), (".s", ".globl")])
def test_build_writes_what_the_name_says(suffix: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / f"out{suffix}"
    assert main(["build", EXAMPLE, "-o", str(file)]) == 0
    assert said in file.read_text()


WRONG = {
    "no_such_file": (["run", "nowhere.mlir"], "nowhere.mlir cannot be read"),
    "not_text": (["build", "{binary}", "--emit", "te"], "is not text"),
    "not_mlir": (["run", "{garbage}"], "is not registered"),
    "unverified": (["run", "{unverified}"], "{unverified}:2:3: error: Expected"),
    "deep": (["run", "{deep}"], ""),
    "no_such_function": (["run", EXAMPLE, "--function", "other"], "other"),
    "no_level": (["build", EXAMPLE], "it is not said what to build"),
    "no_te_below_it": (["build", "{low}", "--emit", "te"], "no level 'te'"),
    "unwritable": (["build", EXAMPLE, "-o", "{folder}/no/out.s"], "cannot be written"),
    "no_workload": (["bench"], "no workload is named"),
    "unknown_workload": (["bench", "nothing"], "there is no workload 'nothing'"),
    "unknown_contender": (["bench", TINY, "--against", "nobody"], "there is no contender 'nobody'"),
    "unwritable_json": (["bench", TINY, "--json", "{folder}/no/out.json"], "cannot be written"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_ends_in_a_sentence(case: str, tmp_path: Path, strata: Strata) -> None:
    files = {
        "binary": b"\xff\xfe\x00",
        "garbage": b"func.func @f() {\n  nonsense\n}\n",
        "unverified": b"func.func @f(%A: tensor<4xf32>) -> tensor<4xi32> {\n  func.return %A : tensor<4xf32>\n}\n",
        "deep": b"builtin.module {" * 3000 + b"}" * 3000,
        "low": b"func.func @f(%A: memref<4xf32>) {\n  func.return\n}\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    names = {name: str(tmp_path / name) for name in files} | {"folder": str(tmp_path)}
    arguments, said = WRONG[case]
    assert said.format(**names) in strata(*(argument.format(**names) for argument in arguments), status=1)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["fly"],
        ["bench", TINY, "--scale", "0"],
        ["bench", TINY, "--threads", "0"],
        ["bench", TINY, "--rounds", "x"],
        ["run", EXAMPLE, "--seed", "-1"],
        ["build", EXAMPLE, "--emit", "cobol"],
    ],
)
def test_wrong_options_end_in_a_sentence(arguments: list[str], strata: Strata) -> None:
    assert strata(*arguments, status=1).endswith(" --help says more)")


def test_bench_prints_and_writes(tmp_path: Path, strata: Strata) -> None:
    file = tmp_path / "out.json"
    out = strata("bench", TINY, "softmax:4x8", "--rounds", "2", "--json", str(file), "--seed", "1")
    assert "strata" in out and "numpy" in out and "GB/s" in out
    document = json.loads(file.read_text())
    assert [output["workload"] for output in document["results"]] == ["matmul_5x6x7", "softmax_4x8"]
    assert [contender["name"] for contender in document["results"][0]["contenders"]] == ["strata", "numpy"]


def test_bench_writes_through_links_and_into_pipes(tmp_path: Path) -> None:
    link, file, pipe = tmp_path / "link", tmp_path / "out.json", tmp_path / "pipe"
    link.symlink_to(file)
    os.mkfifo(pipe)
    collected: list[str] = []
    reader = threading.Thread(target=lambda: collected.append(pipe.read_text()), daemon=True)
    reader.start()
    for place in (link, pipe):
        assert main(["bench", TINY, "softmax:4x8", "--rounds", "1", "--json", str(place)]) == 0
    reader.join(10)
    assert link.is_symlink() and pipe.is_fifo() and sorted(os.listdir(tmp_path)) == ["link", "out.json", "pipe"]
    for text in (file.read_text(), collected[0]):
        assert len(json.loads(text)["results"]) == 2, "one document, of all"


def test_what_a_descriptor_leads_to_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w") as out:
        out.write("before\n")
        out.flush()
        write(Path(f"/dev/fd/{out.fileno()}"), ["one\n", "two\n"])
        assert os.fstat(out.fileno()).st_ino == (tmp_path / "out").stat().st_ino
    assert (tmp_path / "out").read_text() == "before\none\ntwo\n" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there are no files in /dev")
def test_files_in_dev_are_files() -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        for text in ("old\n", "new\n"):
            write(Path(folder) / "out", [text])
        assert (Path(folder) / "out").read_text() == "new\n"


def test_bench_lists(strata: Strata) -> None:
    out = strata("bench", "--list")
    assert "conv_grad_weight" in out and "matmul:MxKxN" in out and all(n in out for n in contenders.CONTENDERS)


def test_a_workload_runs_by_its_name(strata: Strata) -> None:
    assert "2 inputs, 1 output" in strata("run", TINY, "--calls", "1")


def test_an_interrupted_bench_says_what_it_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, strata: Strata) -> None:
    def interrupt(*given: object) -> None:
        raise KeyboardInterrupt

    who = contenders.Contender("numpy", "", lambda: "", interrupt)  # type: ignore[arg-type]
    monkeypatch.setitem(contenders.CONTENDERS, "numpy", who)
    file = tmp_path / "out.json"
    assert "it was interrupted" in strata("bench", TINY, TINY, "--json", str(file), status=130)
    assert len(json.loads(file.read_text())["results"]) == 1


def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_demo_finds_the_inner_loop() -> None:
    assembly = (
        ".LBB0_1:\n\tmovq %rax, %rbx\n.LBB0_2:\n\tvfmadd231ps (%rax), %zmm1, %zmm2\n\tjne\t.LBB0_2\n"
        "\tvfmadd231ps %zmm0, %zmm1, %zmm2\n\tvfmadd231ps %zmm0, %zmm1, %zmm2\n\tjne\t.LBB0_1\n"
    )
    assert demo().inner_loop(assembly)[0].strip() == ".LBB0_2:"
    assert len(demo().inner_loop(assembly)) == 3 and demo().inner_loop("\tret\n") == []


@pytest.mark.parametrize(
    ("command", "arguments", "hint"),
    [
        (main, ["rnu", EXAMPLE], "did you mean 'run'?"),
        (main, ["expalin", EXAMPLE], "did you mean 'explain'?"),
        (main, ["run", EXAMPLE, "--treads", "2"], "did you mean '--threads'? (strata run --help says more)"),
        (main, ["db", "best", "a.db", "--mod=asm", "--modd", "x"], "did you mean '--mode'? (strata db best --help"),
        (main, ["run", EXAMPLE, "--polcy=fast"], "did you mean '--policy'?"),
        (main, ["run", EXAMPLE, "--policy", "strikt"], "did you mean 'strict'?"),
        (main, ["db", "lst", "a.db"], "did you mean 'list'?"),
        (main, ["check", EXAMPLE, "--target", "cdua"], "did you mean 'cuda'?"),
        (strata_opt, [EXAMPLE, "--lst-passes"], "did you mean '--list-passes'?"),
        (strata_opt, [EXAMPLE, "-t", "lvm"], "did you mean 'llvm'?"),
        (strata_opt, [EXAMPLE, "-p", "te-to-lop"], "did you mean 'te-to-loop'?"),
    ],
)
def test_a_wrong_word_is_named_with_the_right_one(
    command: Callable[[list[str]], int], arguments: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(arguments) == 1
    assert hint in capsys.readouterr().err
    assert command(["--nothing-like-it"]) == 1
    assert "did you mean" not in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "check", "hash", "explain", "space", "tune"])
def test_a_script_is_no_program(command: str, strata: Strata) -> None:
    script = str(EXAMPLE_FOLDER / "walk_schedule.mlir")
    assert "the module has no function at all: it is a script, for --script" in strata(command, script, status=1)


def test_why_a_script_cannot_be_read_is_said(tmp_path: Path, strata: Strata) -> None:
    for script, why in ((tmp_path, "Is a directory"), (tmp_path / "no.mlir", "No such file or directory")):
        said = strata("explain", EXAMPLE, "--static", "--script", str(script), status=1)
        assert f"the script {script} cannot be read: {why}" in said


def test_plugins_says_that_there_is_none(monkeypatch: pytest.MonkeyPatch, strata: Strata) -> None:
    monkeypatch.setattr("compiler.support.plugins.registries", list)
    assert strata("plugins").startswith("no plugin is installed or loaded: ")


def test_a_target_by_the_name_that_others_have() -> None:
    x = te.placeholder((4,), name="x")
    f = te.function("f", [x], te.nn.exp(x))
    assert SearchTask(f, target="llvm", threads=1).target == "cpu"
    assert compiler.build(f, target="llvm").name == "f"
    assert compiler.driver.build_as_written(f, target="llvm").name == "f"
    for refused in (SearchTask, compiler.build):
        for name, said in {
            "llvm -mcpu=skylake": "it has no options: STRATA_MACHINE names a processor",
            "cdua": "did you mean 'cuda'",
            "metal": "there are cpu, which TVM calls llvm, cuda and c",
        }.items():
            with pytest.raises(TargetError, match=said):
                refused(f, target=name)
    with pytest.raises(TargetError, match="the target cpu has no kernels of a GPU: give cuda"):
        gpu_of("cpu", "sm_80")


def test_explain_for_several_threads(tmp_path: Path, strata: Strata) -> None:
    file = tmp_path / "parallel.mlir"
    assert strata_opt([EXAMPLE, "-p", "te-to-loop,parallelize{block=T loop=m}", "-o", str(file)]) == 0
    out = strata("explain", str(file), "--threads", "2", "--calls", "2")
    assert "for 2 threads, and timed on one of them" in out and "Time by loop" in out
    assert "threads" not in strata("explain", str(file), "--static").partition("Innermost")[0]


def test_examples_are_written_and_not_overwritten(
    tmp_path: Path, strata: Strata, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "examples"
    for _ in range(2):
        out = strata("examples", str(folder))
        assert len(out.splitlines()) == len(EXAMPLES) == len(list(folder.iterdir()))
        assert f"{folder}/mm_exp_mm.mlir: matmul, exp, matmul" in out
    assert main(["check", str(folder / "gpu_matmul.mlir")]) == 0
    capsys.readouterr()
    own = folder / "mm_exp_mm.mlir"
    own.write_text("mine")
    (folder / "gpu_matmul.mlir").unlink()
    assert "mm_exp_mm.mlir is another file" in strata("examples", str(folder), status=1)
    assert own.read_text() == "mine" and not (folder / "gpu_matmul.mlir").exists()
    assert "File exists" in strata("examples", str(own), status=1)
    assert "is not the name of a file" in strata("examples", "", status=1)
    with pytest.raises(InputError, match=r"there is no example 'mm_exp.mlir'; did you mean 'mm_exp_mm.mlir'"):
        compiler.examples.path("mm_exp.mlir")
    assert {path.name for path in EXAMPLE_FOLDER.iterdir() if path.suffix in (".mlir", ".onnx")} == EXAMPLES.keys()


def test_cache_says_what_it_has_and_is_emptied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "cache"
    monkeypatch.setenv("STRATA_CACHE_DIR", str(folder))

    def said(action: str, status: int = 0) -> str:
        assert main(["cache", action]) == status
        streams = capsys.readouterr()
        return streams.err if status else streams.out

    assert said("path") == f"{folder}\n" and "entries  0\n" in said("info")
    assert main(["build", EXAMPLE, "--emit", "te"]) == 0
    capsys.readouterr()
    assert f"path     {folder}\nstate    on\nentries  1\n" in said("info")
    assert said("clear") == "removed 1 entry\n" and list(folder.iterdir()) == []
    folder.chmod(0o777)
    assert "state    not used: the folder is open to other users: its mode is 0777" in said("info")
    assert f"error: {folder} is not used as a cache: the folder is open" in said("clear", 1)
    monkeypatch.setenv("STRATA_CACHE_DIR", EXAMPLE)
    assert "state    not used: Not a directory" in said("info")
    monkeypatch.setenv("STRATA_CACHE", "off")
    assert said("info") == "state    off: STRATA_CACHE is off\n"
    assert "error: there is no cache: STRATA_CACHE is off" in said("path", 1)
