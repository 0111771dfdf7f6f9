"""Small PTX texts that the tests of the interpreter share: a body in the frame of a kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.targets.ptx import PtxBuffer, PtxLaunch, PtxResult, run_ptx

Array = np.ndarray[Any, Any]
REGISTERS = """
    .reg .pred %p<9>;
    .reg .b16 %h<9>;
    .reg .b32 %r<30>;
    .reg .f32 %f<20>;
    .reg .b64 %rd<20>;
    .reg .f64 %fd<9>;
"""


def kernel(body: str, arrays: int, declarations: str = "") -> str:
    """The text of a kernel `k` with some arrays, whose addresses are in %rd1, %rd2 and so on; %r0 is the thread."""
    parameters = ", ".join(f".param .u64 k_{number}" for number in range(arrays))
    loads = "".join(f"ld.param.u64 %rd{number + 1}, [k_{number}];\n" for number in range(arrays))
    return f"""
.version 8.0
.target sm_80
.address_size 64
{declarations}
.visible .entry k({parameters})
{{
{REGISTERS}
{loads}
mov.u32 %r0, %tid.x;
{body}
ret;
}}
"""


def run(
    body: str,
    inputs: Sequence[Array],
    outputs: Sequence[Array] = (),
    threads: int = 32,
    blocks: int = 1,
    declarations: str = "",
    shared_bytes: int = 0,
) -> PtxResult:
    """The result of a body on inputs and on outputs that begin uninitialised."""
    arrays = [*inputs, *outputs]
    launch = PtxLaunch("k", (blocks, 1, 1), (threads, 1, 1), tuple(range(len(arrays))), shared_bytes)
    buffers = [PtxBuffer(f"array {n}", array, n < len(inputs)) for n, array in enumerate(arrays)]
    return run_ptx(kernel(body, len(arrays), declarations), [launch], buffers)


def indexed(number: int, width: int, register: int = 10) -> str:
    """Set %rd{register} to the address of the thread's element of an array."""
    return f"mul.wide.u32 %rd{register}, %r0, {width}; add.s64 %rd{register}, %rd{number}, %rd{register};\n"
