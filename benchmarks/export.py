"""`python -m benchmarks.export [NAME ...]`: networks as libraries beside onnxruntime's session and OpenVINO's blob.

Each contender loads its file in a process of its own, on one thread: the bytes of its files, the milliseconds from the
file to a callable (modules are imported before), of the first call, and of a call in the middle of nine. The library is
called by a C program and by `strata.load`; `filled` is that of `Kernel.export`, whose constants are prepared. Results
are compared with the kernel's, bit by bit for the library.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import compiler
import strata
from benchmarks.networks import bert, resnet18
from benchmarks.whole import OnnxNetwork, installed, weights_of
from compiler import te
from compiler.targets.compilers import run_compiler

NETWORKS: dict[str, Callable[..., te.Function]] = {
    "resnet18": resnet18,
    "bert_layer": lambda make=None: bert(1, make=make),
}
CALLER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * t.tv_sec + 1e-6 * t.tv_nsec;
}
static int larger(const void *a, const void *b) {
  return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}
typedef size_t size_function(void);
typedef size_t space_function(int);
typedef int prepare_function(const void *const *, void *, size_t);
typedef int run_function(const void *, const void *const *, void *const *, void *, size_t, int);
int main(int count, char **words) {
  size_t in_bytes = strtoul(words[3], 0, 10), out_bytes = strtoul(words[4], 0, 10);
  void *x = aligned_alloc(64, (in_bytes + 63) / 64 * 64), *y = aligned_alloc(64, (out_bytes + 63) / 64 * 64);
  FILE *file = fopen(words[2], "rb");
  if (count < 5 || fread(x, 1, in_bytes, file) != in_bytes) return 9;
  double start = now(), times[9];
  void *library = dlopen(words[1], RTLD_NOW);
  if (!library) return 8;
  size_function *constants_bytes = (size_function *)dlsym(library, "net_constants_bytes");
  space_function *workspace_bytes = (space_function *)dlsym(library, "net_workspace_bytes");
  prepare_function *prepare = (prepare_function *)dlsym(library, "net_prepare");
  run_function *run = (run_function *)dlsym(library, "net_run");
  size_t needed = constants_bytes(), space = workspace_bytes(1);
  void *constants = aligned_alloc(64, needed), *workspace = aligned_alloc(64, space);
  if (prepare(0, constants, needed)) return 7;
  double loaded = now();
  if (run(constants, (const void *const *)&x, &y, workspace, space, 1)) return 6;
  double first = now();
  for (int i = 0; i < 9; ++i) {
    double before = now();
    run(constants, (const void *const *)&x, &y, workspace, space, 1);
    times[i] = now() - before;
  }
  qsort(times, 9, sizeof times[0], larger);
  fwrite(y, 1, out_bytes, fopen(words[5], "wb"));
  printf("[%f, %f, %f]\n", loaded - start, first - loaded, times[4]);
  return 0;
}
"""
TIMED = """
import json, sys, time
from importlib import import_module
import numpy as np
kind, path, given, result = sys.argv[1:]
x = np.load(given)
module = import_module({"strata": "strata", "onnxruntime": "onnxruntime", "openvino": "openvino"}[kind])
if kind == "strata":
    module.load
start = time.perf_counter()
if kind == "strata":
    call = module.load(path)
elif kind == "onnxruntime":
    options = module.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = module.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    call = lambda x: session.run(None, {name: x})[0]
else:
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = module.Core().import_model(open(path, "rb").read(), "CPU", settings)
    request = compiled.create_infer_request()
    call = lambda x: request.infer({0: x}, share_inputs=True)[0]
loaded = time.perf_counter()
y = call(x)
first = time.perf_counter()
times = []
for _ in range(9):
    before = time.perf_counter()
    y = call(x)
    times.append(time.perf_counter() - before)
np.save(result, y)
print(json.dumps([1e3 * (loaded - start), 1e3 * (first - loaded), 1e3 * sorted(times)[4]]))
"""


def measured(name: str, folder: Path) -> None:
    """Write the files of a network in every form, run each contender, and print a line for each."""
    onnx = installed("onnx")
    written = OnnxNetwork(name, onnx) if onnx else None
    function = NETWORKS[name](make=lambda _: written) if written else NETWORKS[name]()
    arrays = weights_of(function)
    shape = next(tuple(tensor.shape) for tensor in function.inputs if tensor.name == "X")
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    np.save(folder / "x.npy", x)
    (folder / "x.bin").write_bytes(x.tobytes())
    kernel = compiler.build(function, threads=1, constants=arrays)
    expected = kernel(x)
    strata.export(function, folder / "libnet.so", threads=1, constants=arrays)
    (folder / "filled").mkdir()
    kernel.export(folder / "filled" / "libnet.so")
    print(f"{name}: weights {sum(array.nbytes for array in arrays.values()) / 1e6:.1f} MB")
    (folder / "caller.c").write_text(CALLER)
    run_compiler(["-O2", "-o", "caller", "caller.c", "-ldl"], folder)
    words = ["./caller", "./libnet.so", "x.bin", str(x.nbytes), str(expected.nbytes), "y.bin"]
    row("library, C", folder / "libnet.so", words, folder)
    assert (folder / "y.bin").read_bytes() == expected.tobytes(), "the library gives other bits than the kernel"
    words[1] = "./filled/libnet.so"
    row("filled, C", folder / "filled" / "libnet.so", words, folder)
    python = [sys.executable, "-c", TIMED]
    row("library, Python", folder / "libnet.so", [*python, "strata", "libnet.so", "x.npy", "y.npy"], folder)
    assert np.array_equal(np.load(folder / "y.npy"), expected)
    if written is None or onnx is None:
        return
    model = written.model(onnx, arrays)
    (folder / "net.onnx").write_bytes(model)
    if installed("onnxruntime"):
        row("onnxruntime", folder / "net.onnx", [*python, "onnxruntime", "net.onnx", "x.npy", "y.npy"], folder)
        np.testing.assert_allclose(np.load(folder / "y.npy"), expected, rtol=1e-3, atol=1e-3 * abs(expected).max())
    openvino = installed("openvino")
    if openvino is not None:
        core = openvino.Core()
        settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
        compiled = core.compile_model(core.read_model(model, b""), "CPU", settings)
        (folder / "net.blob").write_bytes(compiled.export_model().getvalue())
        row("OpenVINO's blob", folder / "net.blob", [*python, "openvino", "net.blob", "x.npy", "y.npy"], folder)
        np.testing.assert_allclose(np.load(folder / "y.npy"), expected, rtol=1e-3, atol=1e-3 * abs(expected).max())


def row(label: str, file: Path, words: list[str], folder: Path) -> None:
    """Run a contender three times, and print the bytes of its file and the least of its times."""
    runs = [subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True) for _ in range(3)]
    load, first, call = (min(column) for column in zip(*(json.loads(run.stdout) for run in runs), strict=True))
    size = file.stat().st_size / 1e6
    print(f"  {label:16} {size:7.1f} MB, loaded in {load:6.1f} ms, first call {first:6.1f} ms, then {call:6.2f} ms")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", default=list(NETWORKS))
    for name in parser.parse_args().networks:
        with TemporaryDirectory(prefix="strata-") as folder:
            measured(name, Path(folder))


if __name__ == "__main__":
    main()
