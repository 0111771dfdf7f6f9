"""The time of a graph's parts, for a report."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from torch import fx

from compiler.frontends.torch.report import GraphReport
from compiler.targets.torch_gpus import TorchGpu


class TimedGraph(fx.Interpreter):  # type: ignore[misc]
    """An interpreter of a graph of parts. It records the seconds of its last run in `report`: those of all parts, and
    those of the parts named `compiled`, on a `gpu` to the end of their kernels."""

    def __init__(
        self, module: fx.GraphModule, compiled: set[str], report: GraphReport, gpu: TorchGpu | None = None
    ) -> None:
        super().__init__(module)
        self._compiled, self._report, self._gpu = compiled, report, gpu

    def run(self, *arguments: Any, **named: Any) -> Any:
        """Reset the recorded seconds, run the graph and return its results."""
        self._report.seconds = self._report.seconds_compiled = 0.0
        return super().run(*arguments, **named)

    def call_module(self, target: Any, args: Any, kwargs: Any) -> Any:
        """Run the part `target`, add its seconds to the report and return its results."""
        begin = perf_counter()
        returned = super().call_module(target, args, kwargs)
        if self._gpu is not None:
            self._gpu.synchronize()
        seconds = perf_counter() - begin
        self._report.seconds += seconds
        self._report.seconds_compiled += seconds if target in self._compiled else 0.0
        return returned
