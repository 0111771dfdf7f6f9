"""`python -m benchmarks.torch_models [NAME ...]`: networks in plain torch, by `torch.compile(model, backend="strata")`.

Random weights, float32, batch 1, one thread, without a trial. Beside `strata.build` of the same network, its weights
constant, torch's own ways, eager and compiled with frozen weights, and onnxruntime and OpenVINO where the model can be
exported, in turns; CPU time, medians of rounds. `build` and `call` run one kernel, on torch tensors, with new results:
`build` calls it, and `call` is torch.compile with a backend that only calls it: what it adds is torch's share. Results
are compared with eager ones. `--json FILE` adds what was measured to a file; `--table FILE` prints the table of one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from benchmarks.models_torch import Bert, Branching, Gpt2, MobileNetV2, ResNet, UNet, Unrolled, ViT, numbered
from compiler.driver.building import build
from compiler.frontends.torch import explain, from_torch
from compiler.support.errors import InputError
from compiler.support.text import duration

Made = tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, ...]]]


def _image(size: int = 224) -> tuple[Tensor, ...]:
    return (torch.randn(1, 3, size, size),)


MODELS: dict[str, Made] = {
    "ResNet-18": (lambda: ResNet((2, 2, 2, 2), False), _image),
    "ResNet-50": (lambda: ResNet((3, 4, 6, 3), True), _image),
    "MobileNetV2": (MobileNetV2, _image),
    "U-Net, 128x128": (UNet, lambda: _image(128)),
    "BERT-base, 128 words": (Bert, lambda: (numbered((1, 128), 30522), torch.ones(1, 128, dtype=torch.int64))),
    "GPT-2, 128 words": (Gpt2, lambda: (numbered((1, 128), 50257),)),
    "ViT-B/16": (ViT, _image),
    "LSTM cell, 16 steps": (Unrolled, lambda: (torch.randn(8, 16, 256),)),
    "a branch on values": (Branching, lambda: (torch.randn(64, 512),)),
}


@dataclass(frozen=True)
class Row:
    """The measurements of a model: the shares of its nodes and of their time that strata compiles, the graph breaks,
    CPU seconds of a call and of compilation by contender, and the largest error of strata's results, relative to the
    largest element."""

    name: str
    nodes: float
    time: float
    breaks: int
    seconds: dict[str, float]
    compiling: dict[str, float]
    error: float


def measured(name: str, made: Made, rounds: int, contenders: Sequence[str]) -> Row:
    """Compile a model by strata and the contenders, and time eager mode and these in turns; a contender that cannot
    export the model is left out."""
    torch.manual_seed(0)
    model, inputs = made[0]().eval(), made[1]()
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d):  # by torch's default, little is left of the input of MobileNetV2 beside biases
            nn.init.kaiming_normal_(layer.weight)
    report = explain(model, *inputs, options={"threads": 1})
    torch._dynamo.reset()
    calls: dict[str, Callable[[], Any]] = {"eager": lambda: model(*inputs)}
    compiling: dict[str, float] = {}
    for label, prepare in {"strata": _strata, **{n: CONTENDERS[n] for n in contenders}}.items():
        begin = time.process_time()
        call = prepare(model, inputs)
        if call is not None:
            call()
            calls[label], compiling[label] = call, time.process_time() - begin
        if call is not None and label == "build":
            calls["call"] = _behind_torch(call, model, inputs)
    wanted = pytree.tree_leaves(calls["eager"]())
    actual = pytree.tree_leaves(calls["strata"]())
    error = max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(actual, wanted, strict=True))
    seconds = in_turns(calls, rounds)
    return Row(name, report.nodes_share, report.time_share, len(report.breaks), seconds, compiling, error)


def _strata(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any]:
    compiled = torch.compile(model, backend="strata", options={"threads": 1, "compare": False})
    return lambda: compiled(*inputs)


def _build(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any] | None:
    try:
        program = from_torch(model, inputs)
    except InputError as error:
        print(f"not exported: {str(error)[:120]}", file=sys.stderr)
        return None
    kernel = build(program.function, threads=1, constants=program.constants)
    return lambda: kernel(*inputs)


def _behind_torch(call: Callable[[], Any], model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any]:
    """Return a call of a model by torch.compile whose only graph is `call`, so that torch's own overhead is
    included."""

    def calling(graph: torch.fx.GraphModule, examples: list[Any]) -> Callable[..., Any]:
        return lambda *arguments: pytree.tree_leaves(call())

    compiled = torch.compile(model, backend=calling, fullgraph=True)
    compiled(*inputs)
    return lambda: compiled(*inputs)


def _inductor(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any]:
    compiled = torch.compile(model)
    with torch._inductor.config.patch(freezing=True):
        compiled(*inputs)
    return lambda: compiled(*inputs)


def _onnxruntime(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any] | None:
    if find_spec("onnxruntime") is None:
        return None
    onnxruntime = import_module("onnxruntime")
    with _exported(model, inputs) as path:
        if path is None:
            return None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    given = {value.name: t.numpy() for value, t in zip(session.get_inputs(), inputs, strict=False)}
    return lambda: session.run(None, given)


def _openvino(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], Any] | None:
    if find_spec("openvino") is None:
        return None
    openvino = import_module("openvino")
    with _exported(model, inputs) as path:
        if path is None:
            return None
        settings = {"INFERENCE_NUM_THREADS": 1, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
        request = openvino.Core().compile_model(str(path), "CPU", settings).create_infer_request()
    given = [t.numpy() for t in inputs[: len(request.model_inputs)]]
    return lambda: request.infer(given, share_inputs=True, share_outputs=True)


@contextmanager
def _exported(model: nn.Module, inputs: tuple[Tensor, ...]) -> Iterator[Path | None]:
    """Yield the model as a file of ONNX, which is deleted at the end; None, after a line with the reason, if torch
    cannot export it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        try:
            torch.onnx.export(model, inputs, str(path), dynamo=False, opset_version=17)
        except (RuntimeError, TypeError, ImportError, torch.onnx.errors.OnnxExporterError) as error:
            print(f"not exported to ONNX: {str(error)[:120]}", file=sys.stderr)
            yield None
        else:
            yield path


PEERS: dict[str, Callable[[nn.Module, tuple[Tensor, ...]], Callable[[], Any] | None]] = {
    "inductor": _inductor,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
}
"""Other runtimes: each gives a call of the model, or None if it cannot run it."""
CONTENDERS = {"build": _build, **PEERS}
"""Those beside which torch.compile with strata is measured."""


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Median CPU seconds of a call, the contenders in turns."""
    taken: dict[str, list[float]] = {label: [] for label in calls}
    for n in range(rounds + 2):
        for label, call in calls.items():
            begin, count = time.process_time(), 0
            while not count or time.process_time() - begin < 0.02:
                call()
                count += 1
            if n >= 2:
                taken[label].append((time.process_time() - begin) / count)
    return {label: median(times) for label, times in taken.items()}


def table(rows: list[Row]) -> str:
    """The rows as a table of a page: times relative to `build` if it is measured, else to strata."""
    named = {
        "build": "build",
        "call": "torch.compile, a call of it",
        "strata": "torch.compile, strata",
        "eager": "torch eager",
        "inductor": "inductor, frozen",
        "onnxruntime": "onnxruntime",
        "openvino": "OpenVINO",
    }
    labels = [label for label in named if any(label in row.seconds for row in rows)]
    lines = [
        f"| | nodes, time compiled | {' | '.join(named[label] for label in labels)} |",
        "|---" * (2 + len(labels)) + "|",
    ]
    for row in rows:
        unit = row.seconds.get("build", row.seconds["strata"])
        cells = [f"{duration(t)} ({t / unit:.2f})" if (t := row.seconds.get(n)) else "" for n in labels]
        lines.append(f"| {row.name} | {row.nodes:.0%}, {row.time:.0%} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure the models that are named, or all of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MODELS))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--against",
        nargs="+",
        default=list(CONTENDERS),
        choices=CONTENDERS,
        metavar="CONTENDER",
        help=", ".join(CONTENDERS),
    )
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    if given.table:
        print(table([Row(**json.loads(line)) for line in given.table.read_text().splitlines()]))
        return
    chosen = [name for name in MODELS if not given.names or any(n.lower() in name.lower() for n in given.names)]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    with torch.no_grad():
        for name in chosen:
            rows.append(measured(name, MODELS[name], given.rounds, given.against))
            print(rows[-1], flush=True)
            if given.json:
                with given.json.open("a") as file:
                    file.write(json.dumps(asdict(rows[-1])) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
