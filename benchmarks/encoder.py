"""Encoder layers of BERT-base beside onnxruntime and OpenVINO, in turns: `python -m benchmarks.encoder DATABASE`.

One program of as many layers as asked, tuned group by group into the database before it is timed, weights constant in
every contender. Contenders that are not installed are left out and named.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from importlib import import_module
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np

from compiler import te
from compiler.bench.error_bounds import Array
from compiler.bench.onnx_model import Graph
from compiler.targets.cpu.ceilings import Arithmetic

WIDTH, HEADS, HIDDEN = 768, 12, 3072
ROUNDS = 15
nn = te.nn
Weights = dict[str, Array]


def weights(layers: int, seed: int = 0) -> Weights:
    """Random weights, f32, scaled so that activations stay near 1."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Array:
        scaled: Array = (random.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)
        return scaled

    def vector(size: int, around: float) -> Array:
        return (around + 0.1 * random.standard_normal(size)).astype(np.float32)

    arrays: Weights = {}
    for n in range(layers):
        for name in "qkvo":
            arrays |= {f"W{name}{n}": matrix(WIDTH, WIDTH), f"b{name}{n}": vector(WIDTH, 0)}
        arrays |= {f"W1{n}": matrix(WIDTH, HIDDEN), f"b1{n}": vector(HIDDEN, 0)}
        arrays |= {f"W2{n}": matrix(HIDDEN, WIDTH), f"b2{n}": vector(WIDTH, 0)}
        for part in "12":
            arrays |= {f"g{part}{n}": vector(WIDTH, 1), f"h{part}{n}": vector(WIDTH, 0)}
    return arrays


def encoder(layers: int, tokens: int, arrays: Weights) -> te.Function:
    """The te program: X [tokens, 768] through the layers; the weights are inputs of their names."""
    w = {name: te.placeholder(array.shape, "f32", name) for name, array in arrays.items()}
    X = x = te.placeholder((tokens, WIDTH), "f32", "X")

    def dense(x: te.Tensor, name: str) -> te.Tensor:
        return nn.add(nn.matmul(x, w["W" + name], name="mm" + name), w["b" + name])

    def heads(t: te.Tensor) -> te.Tensor:
        return nn.transpose(nn.reshape(t, (tokens, HEADS, WIDTH // HEADS)), (1, 0, 2))

    for n in range(layers):
        q, k, v = (heads(dense(x, f"{name}{n}")) for name in "qkv")
        mixed = nn.reshape(nn.transpose(nn.attention(q, k, v), (1, 0, 2)), (tokens, WIDTH))
        y = nn.layer_norm(nn.add(x, dense(mixed, f"o{n}")), w[f"g1{n}"], w[f"h1{n}"])
        hidden = dense(nn.gelu(dense(y, f"1{n}")), f"2{n}")
        x = nn.layer_norm(nn.add(y, hidden), w[f"g2{n}"], w[f"h2{n}"])
    return te.function("encoder", [X, *w.values()], [x])


def model(onnx: ModuleType, layers: int, tokens: int, arrays: Weights) -> bytes:
    """The same program as a serialized ONNX model, with the weights as initializers."""
    graph, helper = Graph(onnx), onnx.helper
    extra: Weights = {"split": np.array([tokens, HEADS, WIDTH // HEADS]), "join": np.array([tokens, WIDTH])}

    def dense(x: str, name: str) -> str:
        return graph("Add", graph("MatMul", x, "W" + name), "b" + name)

    def heads(x: str, perm: list[int]) -> str:
        return graph("Transpose", graph("Reshape", x, "split"), perm=perm)

    def norm(x: str, part: str) -> str:
        return graph("LayerNormalization", x, "g" + part, "h" + part, axis=-1, epsilon=1e-5)

    def gelu(x: str) -> str:
        grown = graph("Erf", graph("Div", x, graph.scalar(2**0.5)))
        return graph("Mul", graph("Mul", x, graph("Add", grown, graph.scalar(1.0))), graph.scalar(0.5))

    x = "X"
    for n in range(layers):
        q, v = (heads(dense(x, f"{name}{n}"), [1, 0, 2]) for name in "qv")
        scores = graph("MatMul", q, heads(dense(x, f"k{n}"), [1, 2, 0]))
        scores = graph("Softmax", graph("Mul", scores, graph.scalar((WIDTH // HEADS) ** -0.5)), axis=-1)
        mixed = graph("Reshape", graph("Transpose", graph("MatMul", scores, v), perm=[1, 0, 2]), "join")
        y = norm(graph("Add", x, dense(mixed, f"o{n}")), f"1{n}")
        x = norm(graph("Add", y, dense(gelu(dense(y, f"1{n}")), f"2{n}")), f"2{n}")
    graph.end(x)
    f32, shape = onnx.TensorProto.FLOAT, (tokens, WIDTH)
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in {**arrays, **extra}.items()]
    graph_proto = helper.make_graph(
        graph.nodes,
        "encoder",
        [helper.make_tensor_value_info("X", f32, shape)],
        [helper.make_tensor_value_info("result", f32, shape)],
        initializers,
    )
    made = helper.make_model(graph_proto, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    text: bytes = made.SerializeToString()
    return text


Call = Callable[..., Array]


def peers(layers: int, tokens: int, arrays: Weights, threads: int) -> dict[str, Call]:
    """Return the installed runtimes, each as a call of the model; print a line for each that is missing. Empty without
    onnx."""
    by_name: dict[str, Call] = {}
    try:
        text = model(import_module("onnx"), layers, tokens, arrays)
    except ImportError:
        print("onnx is not installed: no peers")
        return by_name
    for name, make in (("onnxruntime", onnxruntime_call), ("openvino", openvino_call)):
        try:
            by_name[name] = make(text, threads)
        except ImportError:
            print(f"{name} is not installed")
    return by_name


def onnxruntime_call(text: bytes, threads: int) -> Call:
    """A call of onnxruntime for the bytes of a model: from its inputs in order to its first result."""
    runtime = import_module("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = runtime.InferenceSession(text, options, providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *inputs: session.run(None, dict(zip(names, inputs, strict=True)))[0]


def openvino_call(text: bytes, threads: int) -> Call:
    """A call of OpenVINO in float32 for the bytes of a model: from its inputs in order to its first result."""
    runtime = import_module("openvino")
    core = runtime.Core()
    settings = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    compiled = core.compile_model(core.read_model(text, b""), "CPU", settings)
    request = compiled.create_infer_request()
    return lambda *inputs: request.infer(dict(enumerate(inputs)), share_inputs=True)[0]


def tuned(arguments: argparse.Namespace, arrays: Weights) -> Any:
    """The kernel of the best records, after tuning if trials are asked for."""
    from compiler.autotune import SearchTask, TuningOptions

    function = encoder(arguments.layers, arguments.tokens, arrays)
    task = SearchTask(func=function, threads=arguments.threads, constants=tuple(arrays))
    if arguments.trials:
        start = time.perf_counter()
        task.tune(TuningOptions(trials=arguments.trials, database=arguments.database, seed=0))
        print(f"tuned in {time.perf_counter() - start:.0f} s")
    start = time.perf_counter()
    kernel = task.apply_best(arguments.database, arrays)
    print(f"built in {time.perf_counter() - start:.2f} s, constants prepared")
    return kernel


def main() -> None:
    """Tune, build, check against the first peer, take turns, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("--layers", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--trials", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    arrays = weights(arguments.layers)
    x = np.random.default_rng(1).standard_normal((arguments.tokens, WIDTH)).astype(np.float32)
    contenders: dict[str, Call] = {"strata": tuned(arguments, arrays)}
    contenders |= peers(arguments.layers, arguments.tokens, arrays, arguments.threads)
    expected = [call(x) for call in contenders.values()][-1]
    times: dict[str, list[float]] = {name: [] for name in contenders}
    ceiling, rates = Arithmetic(arguments.threads), list[float]()
    for _ in range(ROUNDS):
        rates.append(ceiling.probe(0.02).rate)
        for name, call in contenders.items():
            call(x)
            start = time.perf_counter()
            output = call(x)
            times[name].append(1e3 * (time.perf_counter() - start))
            np.testing.assert_allclose(output, expected, rtol=1e-2, atol=1e-3)
    work = 2 * arguments.layers * arguments.tokens * (4 * WIDTH**2 + 2 * WIDTH * HIDDEN + 2 * arguments.tokens * WIDTH)
    bound = 1e3 * work / median(rates)
    size = f"{arguments.layers} layers, {arguments.tokens} tokens, {arguments.threads} threads"
    print(f"{size}; at the ceiling {bound:.2f} ms")
    best = median(times["strata"])
    for name, every in times.items():
        shown = f"{median(every):7.2f} ms ({min(every):.2f} to {max(every):.2f})"
        print(f"{name:12} {shown}  {bound / median(every):.0%}  ours / it {best / median(every):.2f}")
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump({"ceiling_ms": bound, **times}, file)


if __name__ == "__main__":
    main()
