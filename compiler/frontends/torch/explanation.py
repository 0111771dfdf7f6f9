"""`explain`: the compiled and uncompiled parts of a model, with reasons, for one call."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

import torch
from torch._dynamo.backends.registry import lookup_backend
from torch._dynamo.exc import BackendCompilerFailed, TorchRuntimeError
from torch._dynamo.utils import counters

from compiler.frontends.torch.report import Report
from compiler.support.errors import InputError, StrataError


def explain(model: Callable[..., Any], *inputs: Any, options: Mapping[str, Any] | None = None) -> Report:
    """Report one call of a model under `torch.compile(model, backend="strata")`, without gradients.

    options: those of the backend. The model runs five times: twice to compile its graphs, once to time them by kernel
    and operator, and twice in eager mode. Raises InputError for a model that is not callable, for inputs that torch
    refuses, for invalid options, and if torch does not know the backend.
    """
    if not callable(model) or isinstance(model, type):
        raise InputError(f"explain takes a model, not a {type(model).__name__}")
    report, backend = Report(), _backend()

    def reporting(graph: torch.fx.GraphModule, examples: list[Any]) -> Any:
        end_reason = getattr(graph, "compile_subgraph_reason", None)
        if end_reason is not None and end_reason.graph_break:
            report.breaks.append(_first_line(end_reason.reason))
        return backend(graph, examples, options={**(options or {}), "report": report})

    compiled = torch.compile(model, backend=reporting)
    before = Counter(counters["graph_break"])
    _run_thrice(compiled, inputs)
    report.seconds_eager = min(_seconds(model, inputs) for _ in range(2))
    if not report.graphs:  # torch failed before the first graph
        report.breaks.extend(map(_first_line, Counter(counters["graph_break"]) - before))
    return report


def _run_thrice(compiled: Callable[..., Any], inputs: Sequence[Any]) -> None:
    try:
        with torch.no_grad():
            for _ in range(3):
                compiled(*inputs)
    except BackendCompilerFailed as error:
        if isinstance(error.inner_exception, StrataError):
            raise error.inner_exception from error
        raise
    except (TorchRuntimeError, RuntimeError, TypeError) as error:
        raise InputError(f"torch refuses the call: {_cause(str(error))}") from error


def _seconds(model: Callable[..., Any], inputs: Sequence[Any]) -> float:
    with torch.no_grad():
        begin = perf_counter()
        model(*inputs)
        return perf_counter() - begin


def _cause(text: str) -> str:
    """Return the cause in torch's message: the text of the exception that it quotes, or else the first line."""
    quoted = re.search(r"got \w+\((['\"])(.*?)\1\)", text)
    return quoted[2] if quoted else _first_line(text)


def _first_line(text: str) -> str:
    return text.strip().split("\n")[0]


def _backend() -> Callable[..., Any]:
    try:
        backend: Callable[..., Any] = lookup_backend("strata")
    except torch._dynamo.exc.InvalidBackend as error:
        raise InputError("torch does not know the backend 'strata': install the package, with its metadata") from error
    return backend
