"""GPGPU-Sim, which runs PTX and counts the cycles of a V100: `python -m tools.gpgpu_sim build`, then `run [M N K]`.

`build` takes some ten minutes on one core and 800 MB in FOLDER: the sources (--source, a clone of
github.com/accel-sim/gpgpu-sim_distribution, by default cloned), flex, bison and makedepend by `apt-get download`, and
headers and NVRTC of CUDA 11.8 by pip. Nothing else needs it: tests skip what is not there.

The simulator has no shuffles that work, mma, ldmatrix or cp.async, and runs a million instructions of threads a second.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # the process of the simulator does without the compiler
    from compiler.targets.cuda import CudaKernel

FOLDER = Path(os.environ.get("STRATA_GPGPU_SIM", Path.home() / ".cache/strata-gpgpu-sim"))
"""Where it is built."""
URL = "https://github.com/accel-sim/gpgpu-sim_distribution"
PACKAGES = ("flex", "bison", "m4", "libfl-dev", "xutils-dev")
WHEELS = ("nvidia-cuda-runtime-cu11==11.8.89", "nvidia-cuda-nvrtc-cu11==11.8.89", "nvidia-cuda-nvcc-cu11==11.8.89")
CONFIG = "configs/tested-cfgs/SM7_QV100"
SETTINGS = {"gpgpu_kernel_launch_latency": "0", "gpgpu_ptx_use_cuobjdump": "0", "visualizer_enabled": "0"}
"""Settings other than the configuration's: cycles are those of the kernel alone."""
NVCC = '#!/bin/sh\necho "nvcc: NVIDIA (R) Cuda compiler driver"\necho "Cuda compilation tools, release 11.0, V11.0.1"\n'
PROFILER = "typedef enum CUoutput_mode_enum { CU_OUT_KEY_VALUE_PAIR = 0, CU_OUT_CSV = 1 } CUoutput_mode;\n"
"""The part of cudaProfiler.h that the simulator reads; the wheels lack the file."""
MAKE = """
export PATH=$PWD/root/usr/bin:$PATH BISON_PKGDATADIR=$PWD/root/usr/share/bison M4=$PWD/root/usr/bin/m4
export CUDA_INSTALL_PATH=$PWD/cuda CPLUS_INCLUDE_PATH=$PWD/root/usr/include C_INCLUDE_PATH=$PWD/root/usr/include
export LIBRARY_PATH=$PWD/root/usr/lib/x86_64-linux-gnu
cd gpgpu-sim && . ./setup_environment release && make
"""


@dataclass(frozen=True)
class Simulated:
    """The cost of a launch: its kernel, cycles without the launch itself, and instructions of threads."""

    kernel: str
    cycles: int
    instructions: int


def library() -> Path | None:
    """Return the simulator's library; None if it is not built."""
    return next(iter(sorted(FOLDER.glob("gpgpu-sim/lib/*/*/release/libcudart.so"))), None)


def build(source: str) -> None:
    """Build the simulator in FOLDER, from the sources at `source`, an address or a path for git. Raises
    CalledProcessError if a step fails."""
    FOLDER.mkdir(parents=True, exist_ok=True)

    def run(*command: str, folder: Path = FOLDER) -> None:
        subprocess.run(command, cwd=folder, check=True)

    if not (FOLDER / "gpgpu-sim").exists():
        run("git", "clone", "--depth", "1", source, "gpgpu-sim")
    (FOLDER / "debs").mkdir(exist_ok=True)
    run("apt-get", "download", *PACKAGES, folder=FOLDER / "debs")
    for package in (FOLDER / "debs").glob("*.deb"):
        run("dpkg", "-x", str(package), "root")
    for n, wheel in enumerate(WHEELS):
        run(sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", f"wheels/{n}", wheel)
    cuda = FOLDER / "cuda"
    for include in FOLDER.glob("wheels/*/nvidia/*/include"):
        shutil.copytree(include, cuda / "include", dirs_exist_ok=True)
    (cuda / "include/cudaProfiler.h").write_text(PROFILER)
    (cuda / "bin").mkdir(exist_ok=True)
    (cuda / "bin/nvcc").write_text(NVCC)
    (cuda / "bin/nvcc").chmod(0o755)
    run("bash", "-c", MAKE)


def ptx(text: str) -> str:
    """Compile a text by NVRTC 11.8 to PTX that the simulator reads. Raises RuntimeError if NVRTC refuses it."""
    nvrtc = ctypes.CDLL(str(next(FOLDER.glob("wheels/*/nvidia/cuda_nvrtc/lib/libnvrtc.so.11*"))))
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    options = (b"--gpu-architecture=compute_70", f"--include-path={FOLDER}/cuda/include".encode())
    status = nvrtc.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
    if status:
        raise RuntimeError(f"NVRTC refuses the text, with status {status}")
    nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    nvrtc.nvrtcGetPTX(program, buffer)
    return re.sub(r"^\.maxntid.*\n", "", buffer.value.decode(), flags=re.MULTILINE)


def simulate(kernel: CudaKernel, inputs: Sequence[Any], most: int = 0) -> tuple[list[Any], list[Simulated]]:
    """Run a kernel on arrays in a process of its own; return its outputs, and the cost of each launch. The simulation
    ends after `most` cycles, if it is not 0: then both are empty. Raises RuntimeError if the simulator is not built or
    stops."""
    if library() is None:
        raise RuntimeError("GPGPU-Sim is not built: python -m tools.gpgpu_sim build")
    first = len(kernel.arguments) - kernel.outputs
    arrays = [np.ascontiguousarray(a) for a in inputs]
    arrays += [np.zeros(a.shape, a.dtype) for a in kernel.arguments[first:]]
    arrays += [np.zeros(max(1, t.size), np.uint8) for t in kernel.source.temporaries]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "kernel.ptx").write_text(ptx(kernel.text))
        _configure(folder, most)
        np.savez(folder / "in.npz", *arrays)
        facts = [
            (launch.name, launch.grid, launch.block, launch.shared_bytes, launch.arguments)
            for launch in kernel.launches
        ]
        (folder / "launches.json").write_text(json.dumps(facts))
        environment = os.environ | {"CUDA_INSTALL_PATH": str(FOLDER / "cuda"), "PTX_JIT_PATH": "."}
        environment |= {"STRATA_PADDING": "-" * 64}  # the simulator appends a name to the string before
        environment |= {"MALLOC_PERTURB_": "255"}  # memory is zero: the simulator reads options that it never sets
        command = [sys.executable, "-m", "tools.gpgpu_sim", "drive", name]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if most and re.search("reaching the maximum cycles", done.stdout):
            return [], []
        if done.returncode or not (folder / "out.npz").exists():
            raise RuntimeError(f"status {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")
        with np.load(folder / "out.npz") as loaded:
            outputs = [loaded[f"arr_{n}"] for n in range(first, len(kernel.arguments))]
    figures = {key: re.findall(rf"^{key}\s*=\s*(\S+)", done.stdout, re.MULTILINE) for key in _KEYS}
    rows = zip(*(figures[key] for key in _KEYS), strict=True)
    return outputs, [Simulated(kernel_name, int(cycles), int(count)) for kernel_name, cycles, count in rows]


_KEYS = ("kernel_name", "gpu_sim_cycle", "gpu_sim_insn")


def _configure(folder: Path, most: int) -> None:
    """Write the simulator's configuration to a folder, with a limit of `most` cycles, 0 for none."""
    settings = SETTINGS | {"gpgpu_max_cycle": str(most)}
    source = FOLDER / "gpgpu-sim" / CONFIG
    for path in source.iterdir():
        shutil.copy(path, folder)
    config = (folder / "gpgpusim.config").read_text("utf-8")
    lines = [line for line in config.splitlines() if line.split(" ")[0].lstrip("-") not in settings]
    (folder / "gpgpusim.config").write_text("\n".join([*lines, *(f"-{k} {v}" for k, v in settings.items())]) + "\n")


class _Extents(ctypes.Structure):
    _fields_ = [(side, ctypes.c_uint) for side in "xyz"]


def _drive(name: str) -> None:
    """Run the launches in a folder through the simulator's CUDA runtime, write `out.npz` and end the process."""
    folder = Path(name)
    os.chdir(folder)
    cuda = ctypes.CDLL(str(library()))
    with np.load(folder / "in.npz") as loaded:
        arrays = [loaded[key] for key in loaded.files]
    cuda.cuLinkAddFile_v2(None, 1, b"kernel.ptx", 0, None, None)
    pointers = []
    for array in arrays:
        pointers.append(ctypes.c_void_p())
        cuda.cudaMalloc(ctypes.byref(pointers[-1]), ctypes.c_size_t(max(1, array.nbytes)))
        cuda.cudaMemcpy(pointers[-1], array.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(array.nbytes), 1)
    cuda.cudaLaunchKernel.argtypes = [
        ctypes.c_void_p,
        _Extents,
        _Extents,
        ctypes.c_void_p,
        ctypes.c_size_t,
        ctypes.c_void_p,
    ]
    register, push = getattr(cuda, "__cudaRegisterFunction"), getattr(cuda, "__cudaPushCallConfiguration")
    push.argtypes = [_Extents, _Extents, ctypes.c_size_t, ctypes.c_void_p]
    for kernel, grid, block, shared, arguments in json.loads((folder / "launches.json").read_text("utf-8")):
        token = ctypes.create_string_buffer(kernel.encode())
        register(ctypes.c_void_p(1), token, token, token, -1, None, None, None, None)
        addresses = (ctypes.c_void_p * len(arguments))(*(ctypes.addressof(pointers[n]) for n in arguments))
        push(_Extents(*grid), _Extents(*block), shared, None)
        cuda.cudaLaunchKernel(token, _Extents(*grid), _Extents(*block), addresses, shared, None)
        cuda.cudaThreadSynchronize()
    for array, pointer in zip(arrays, pointers, strict=True):
        cuda.cudaMemcpy(array.ctypes.data_as(ctypes.c_void_p), pointer, ctypes.c_size_t(array.nbytes), 2)
    np.savez(folder / "out.npz", *arrays)
    sys.stdout.flush()
    os._exit(0)


def _shown(m: int, n: int, k: int) -> None:
    """Run a product of the default schedule, and print the cost of its launches and the largest error."""
    import compiler
    from compiler import te

    a, b = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    function = te.function("mm", [a, b], te.nn.matmul(a, b, name="C"))
    kernel = compiler.build(function, "cuda", arch="sm_70", schedule="auto")
    x, y = (np.random.default_rng(0).standard_normal(t.shape, np.float32) for t in (a, b))
    (z,), rows = simulate(kernel, [x, y])
    print(*rows, f"largest difference {np.abs(z - x @ y).max():.1e}", sep="\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the simulator or run a product; return the status of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("build", "run", "drive"))
    parser.add_argument("rest", nargs="*", help="of run: M N K")
    parser.add_argument("--source", default=URL)
    options = parser.parse_args(arguments)
    if options.command == "build":
        build(options.source)
    elif options.command == "drive":
        _drive(options.rest[0])
    else:
        _shown(*map(int, options.rest or (64, 64, 64)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
