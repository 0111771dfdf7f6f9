"""Run OpenCL C on oclgrind's device, in a process of its own: `python device.py LIBRARY` reads a job from stdin.

A job is a pickled dictionary: the source; launches as (kernel, grid, block, positions of buffers); runs, each a list of
buffers, either bytes or a size in bytes, of which nothing is written. The answer, pickled on stdout: the build log if
the source does not compile, else nothing; and for each run the bytes of its buffers. What oclgrind reports goes to
stderr, with a line `run of inputs` before each run.
"""

from __future__ import annotations

import pickle
import sys
from ctypes import CDLL, byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p, create_string_buffer, sizeof
from typing import Any

OPTIONS = b"-cl-opt-disable"
_ALL_DEVICES, _READ_WRITE, _LOG = c_uint64(0xFFFFFFFF), c_uint64(1), 0x1183
_MAX_BYTES = 1 << 20


class Device:
    """oclgrind's device with a context and a queue."""

    def __init__(self, library: str) -> None:
        self.cl = cl = CDLL(library)
        for name in (
            "clCreateContext",
            "clCreateCommandQueue",
            "clCreateProgramWithSource",
            "clCreateKernel",
            "clCreateBuffer",
        ):
            getattr(cl, name).restype = c_void_p
        platform, self.device, self.error = c_void_p(), c_void_p(), c_int()
        self.check(cl.clGetPlatformIDs(1, byref(platform), None))
        self.check(cl.clGetDeviceIDs(platform, _ALL_DEVICES, 1, byref(self.device), None))
        self.context = c_void_p(cl.clCreateContext(None, 1, byref(self.device), None, None, byref(self.error)))
        self.check(self.error.value)
        self.queue = c_void_p(cl.clCreateCommandQueue(self.context, self.device, c_uint64(0), byref(self.error)))
        self.check(self.error.value)

    def check(self, status: int) -> None:
        if status:
            raise SystemExit(f"OpenCL's status is {status}")

    def build(self, source: str) -> str:
        """Compile a source; the log if that fails, else nothing."""
        text = c_char_p(source.encode())
        self.program = c_void_p(
            self.cl.clCreateProgramWithSource(self.context, 1, byref(text), None, byref(self.error))
        )
        self.check(self.error.value)
        if not self.cl.clBuildProgram(self.program, 1, byref(self.device), OPTIONS, None, None):
            return ""
        log = create_string_buffer(_MAX_BYTES)
        self.check(self.cl.clGetProgramBuildInfo(self.program, self.device, _LOG, c_size_t(_MAX_BYTES), log, None))
        return log.value.decode()

    def buffer(self, content: bytes | int) -> c_void_p:
        size = c_size_t(max(1, content if isinstance(content, int) else len(content)))
        made = c_void_p(self.cl.clCreateBuffer(self.context, _READ_WRITE, size, None, byref(self.error)))
        self.check(self.error.value)
        if isinstance(content, bytes) and content:
            self._transfer(self.cl.clEnqueueWriteBuffer, made, size, content)
        return made

    def _transfer(self, function: Any, buffer: c_void_p, size: c_size_t, host: Any) -> None:
        self.check(function(self.queue, buffer, 1, c_size_t(0), size, host, 0, None, None))

    def launch(self, name: str, grid: Any, block: Any, buffers: list[c_void_p]) -> None:
        kernel = c_void_p(self.cl.clCreateKernel(self.program, name.encode(), byref(self.error)))
        self.check(self.error.value)
        for position, each in enumerate(buffers):
            self.check(self.cl.clSetKernelArg(kernel, c_uint(position), c_size_t(sizeof(c_void_p)), byref(each)))
        local = (c_size_t * 3)(*block)
        size = (c_size_t * 3)(*(g * b for g, b in zip(grid, block, strict=True)))
        self.check(self.cl.clEnqueueNDRangeKernel(self.queue, kernel, 3, None, size, local, 0, None, None))
        self.check(self.cl.clFinish(self.queue))
        self.cl.clReleaseKernel(kernel)

    def content(self, buffer: c_void_p, size: int) -> bytes:
        made = create_string_buffer(max(1, size))
        if size:
            self.check(
                self.cl.clEnqueueReadBuffer(self.queue, buffer, 1, c_size_t(0), c_size_t(size), made, 0, None, None)
            )
        self.cl.clReleaseMemObject(buffer)
        return made.raw[:size]


def main() -> None:
    job = pickle.load(sys.stdin.buffer)
    device = Device(sys.argv[1])
    log = device.build(job["source"])
    outputs = []
    for contents in [] if log else job["runs"]:
        print("run of inputs", file=sys.stderr, flush=True)
        buffers = [device.buffer(content) for content in contents]
        for name, grid, block, arguments in job["launches"]:
            device.launch(name, grid, block, [buffers[n] for n in arguments])
        sizes = [content if isinstance(content, int) else len(content) for content in contents]
        outputs.append([device.content(buffer, size) for buffer, size in zip(buffers, sizes, strict=True)])
    pickle.dump((log, outputs), sys.stdout.buffer)


if __name__ == "__main__":
    main()
