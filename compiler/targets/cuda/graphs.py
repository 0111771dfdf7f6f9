"""`CapturedCall`: the launches of a call as a CUDA graph, which starts them all at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from compiler.support.errors import TargetError
from compiler.support.unpicklable import Unpicklable
from compiler.targets.cuda.runtime import Cupy, LoadedKernels, cupy


@dataclass(frozen=True)
class CapturedCall(Unpicklable):
    """A call captured as a CUDA graph. inputs: the device arrays that each launch reads; a caller writes new elements
    into them. outputs: the device arrays that it writes. A launch allocates no memory."""

    _refusal = "a captured call cannot be pickled or copied: `graph` of its CudaKernel makes another one"

    inputs: tuple[Cupy, ...]
    outputs: tuple[Cupy, ...]
    _graph: Cupy
    _kept: object
    """The memory that the launches read and write beside inputs and outputs."""

    def __call__(self) -> Cupy:
        """Launch the kernels on the current stream of CuPy; return the output, or the tuple of outputs, whose elements
        the next launch overwrites."""
        self._graph.launch(cupy().cuda.get_current_stream())
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs


def captured(
    loaded: LoadedKernels, arrays: Mapping[int, Cupy], inputs: Sequence[Cupy], outputs: Sequence[Cupy]
) -> CapturedCall:
    """Capture the launches of kernels on `arrays`, all arguments but constants by position, as a CUDA graph with a
    workspace of its own; `inputs` and `outputs`, some of the arrays, become its fields. Raises TargetError for kernels
    that cannot be loaded or captured."""
    library = cupy()
    loaded.prepare()
    workspace = library.empty((loaded.source.workspace_bytes,), np.dtype(np.uint8))
    stream = library.cuda.Stream(non_blocking=True)
    library.cuda.get_current_stream().synchronize()  # what fills the inputs
    try:
        with stream:
            stream.begin_capture()
            try:
                loaded.launch(arrays, workspace)
            finally:
                graph = stream.end_capture()
    except library.cuda.runtime.CUDARuntimeError as error:
        raise TargetError(f"the launches cannot be captured in a CUDA graph: {error}") from error
    return CapturedCall(tuple(inputs), tuple(outputs), graph, (workspace, loaded, arrays))
