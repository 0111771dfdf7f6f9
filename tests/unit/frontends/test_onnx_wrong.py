"""Models, files and options that are wrong: each ends in a sentence and exit status 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
from onnx import ModelProto, TensorProto, helper, numpy_helper, save

from compiler.__main__ import main
from tests.said import refusal

pytestmark = pytest.mark.doors

F = TensorProto.FLOAT
Extents = Sequence[int | str | None]


def _value(name: str, shape: Extents | None = (2, 3), element: int = F) -> Any:
    return helper.make_tensor_value_info(name, element, shape)


def _model(nodes: Sequence[Any], inputs: Any = None, outputs: Any = None, opset: int = 17, **more: Any) -> ModelProto:
    """A model of nodes, by default of x to y, both 2x3."""
    graph = helper.make_graph(
        nodes,
        "g",
        [_value("x")] if inputs is None else inputs,
        [_value("y", (None, None))] if outputs is None else outputs,
        [numpy_helper.from_array(array, name) for name, array in more.pop("stored", {}).items()],
    )
    domains = [helper.make_opsetid("", opset), *(helper.make_opsetid(name, 1) for name in more.pop("domains", ()))]
    return helper.make_model(graph, opset_imports=domains, ir_version=10, **more)


def _node(operator: str, *inputs: str, **more: Any) -> Any:
    return helper.make_node(operator, list(inputs) or ["x"], more.pop("outputs", ["y"]), **more)


def _relu() -> ModelProto:
    return _model([_node("Relu")])


def _external(location: str, length: int = 24) -> ModelProto:
    """A model whose weight lies in another file."""
    model = _model([_node("Add", "x", "w")], stored={"w": np.ones((2, 3), np.float32)})
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, "offset": "0", "length": str(length)}.items():
        entry = weight.external_data.add()
        entry.key, entry.value = key, value
    return model


def _with_dimension(**fields: Any) -> ModelProto:
    model = _relu()
    model.graph.input[0].type.tensor_type.shape.dim[0].CopyFrom(
        type(model.graph.input[0].type.tensor_type.shape.dim[0])(**fields)
    )
    return model


def _sequence() -> ModelProto:
    taken = helper.make_tensor_sequence_value_info("s", F, (2, 3))
    return _model([_node("SequenceAt", "s", "i")], [taken, _value("i", (), TensorProto.INT64)])


def _loop(trips: int) -> ModelProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Relu", ["a"], ["b"])],
        "body",
        [_value("i", (), TensorProto.INT64), _value("c", (), TensorProto.BOOL), _value("a")],
        [_value("d", (), TensorProto.BOOL), _value("b")],
    )
    return _model([_node("Loop", "n", "", "x", body=body)], stored={"n": np.array(trips)})


IDS = {"n": np.array([3, 2])}
MODELS: dict[str, tuple[Callable[[], ModelProto], str]] = {
    "no opset": (lambda: ModelProto(ir_version=8), "it has no graph, or states no opset"),
    "opset of the future": (lambda: _model([_node("Relu")], opset=99), "is of opset 99"),
    "cyclic": (
        lambda: _model([_node("Add", "x", "z"), _node("Relu", "y", outputs=["z"])]),
        "is not a valid model: Nodes in a graph must be topologically sorted",
    ),
    "unknown input": (lambda: _model([_node("Relu", "q")]), "is not a valid model: Nodes in a graph"),
    "duplicate names": (lambda: _model([_node("Relu"), _node("Abs")]), "is not a valid model: .*SSA"),
    "no such operator": (lambda: _model([_node("Relux")]), "is not a valid model: No Op registered for Relux"),
    "missing attribute": (lambda: _model([_node("Concat")]), "is not a valid model: Required attribute 'axis'"),
    "unknown domain": (
        lambda: _model([_node("Fancy", domain="ours")], domains=["ours"]),
        r"1 node of 'g' has no te form: ours.Fancy \(1 node, 'y'\): nothing is known of the domain 'ours'",
    ),
    "unbound dimension": (lambda: _with_dimension(dim_param="N"), "the dimensions N are not bound"),
    "unnamed dimension": (_with_dimension, r"the dimensions x\.0 are not bound"),
    "empty dimension": (lambda: _with_dimension(dim_value=0), "'x' has extent 0 in dimension 0"),
    "negative dimension": (lambda: _with_dimension(dim_value=-2), "'x' has extent -2 in dimension 0"),
    "huge shape": (lambda: _with_dimension(dim_value=1 << 62), "'x'"),
    "no shape": (lambda: _model([_node("Relu")], [_value("x", None)]), "is not a valid model: Field 'shape'"),
    "strings": (
        lambda: _model([_node("Identity")], [_value("x", (2,), TensorProto.STRING)], [_value("y", (None, None), 8)]),
        "'x' is of string, a dtype that te lacks",
    ),
    "float8": (
        lambda: _model([_node("Cast", to=17)], outputs=[_value("y", (None, None), 17)], opset=19),
        "Cast .*it casts to float8e4m3fn, a dtype that te lacks",
    ),
    "sequences": (_sequence, "the input 's' is no tensor"),
    "data-dependent extents": (
        lambda: _model([_node("NonZero")], outputs=[_value("y", (None, None), 7)]),
        "NonZero .* data",
    ),
    "computed shape": (
        lambda: _model([_node("Reshape", "x", "n")], [_value("x"), _value("n", (2,), 7)]),
        "Reshape .*the shape is computed by the model: only data decide it",
    ),
    "shape that does not fit": (
        lambda: _model([_node("Reshape", "x", "n")], stored={"n": np.array([4, 2])}),
        "Reshape .*cannot become",
    ),
    "shapes that do not fit": (lambda: _model([_node("MatMul", "x", "x")]), "MatMul .*differ"),
    "dtypes that do not fit": (
        lambda: _model([_node("Add", "x", "n")], [_value("x"), _value("n", (2, 3), 7)]),
        "Add .*dtypes do not mix",
    ),
    "a rank that does not fit": (
        lambda: _model([_node("Hardmax")], [_value("x", ())]),
        "Hardmax .*axis -1 is none of 0",
    ),
    "an axis of none": (
        lambda: _model([_node("Hardmax", axis=9)]),
        "Hardmax .*axis 9|is not a valid model",
    ),
    "a flat axis of none": (lambda: _model([_node("Flatten", axis=5)]), "Flatten .*axis 5|is not a valid model"),
    "an axis twice": (
        lambda: _model([_node("Unsqueeze", "x", "n")], stored={"n": np.array([1, 1])}),
        "Unsqueeze .*name one twice|is not a valid model",
    ),
    "counts that do not fit": (
        lambda: _model([_node("MaxPool", kernel_shape=[2, 2], strides=[1])], [_value("x", (1, 1, 4, 4))]),
        "MaxPool .*its inputs and attributes do not fit each other|is not a valid model|strides?",
    ),
    "no elements": (
        lambda: _model([_node("Expand", "x", "n")], stored={"n": np.array([0, 2, 3])}),
        "Expand .*no elements",
    ),
    "too large ahead": (
        lambda: _model([_node("ConstantOfShape", "n")], stored={"n": np.array([1 << 40])}),
        "ConstantOfShape .*is too large to be computed ahead",
    ),
    "a bad index": (
        lambda: _model([_node("Gather", "x", "n")], stored={"n": np.array([5])}),
        "Gather .*the index 5 is outside",
    ),
    "random": (lambda: _model([_node("RandomNormalLike")]), "RandomNormalLike .*its result is random"),
    "scatter": (
        lambda: _model([_node("ScatterElements", "x", "i", "x")], [_value("x"), _value("i", (2, 3), 7)]),
        "ScatterElements .*a scatter",
    ),
    "a long loop": (lambda: _loop(100_000), "Loop .*runs more than 256 times"),
    "several nodes": (
        lambda: _model([_node("NonZero", outputs=["a"]), _node("RandomNormalLike")]),
        "2 nodes of 'g' have no te form: NonZero .*; RandomNormalLike",
    ),
    "behind one that is refused": (
        lambda: _model([_node("NonZero", outputs=["a"]), _node("NonZero", "a", outputs=["b"]), _node("Unique", "b")]),
        r"3 nodes of 'g' have no te form: NonZero \(2 nodes, 'a'\).*; Unique",
    ),
    "sparse": (lambda: _sparse(), "it is a sparse tensor"),
    "missing external data": (lambda: _external("gone.bin"), "gone.bin"),
    "external data outside": (lambda: _external("../../etc/passwd"), "not a valid model|external data"),
    "external data by an absolute path": (lambda: _external("/etc/passwd"), "not a valid model|external data"),
}


def _sparse() -> ModelProto:
    model = _model([_node("Relu")])
    values = numpy_helper.from_array(np.ones(1, np.float32), "w")
    model.graph.sparse_initializer.append(
        helper.make_sparse_tensor(values, numpy_helper.from_array(np.array([1]), "i"), [3])
    )
    return model


def _fails(arguments: Sequence[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with status 1 and one sentence on stderr that has these words."""
    import re

    assert main(arguments) == 1
    error = refusal(capsys.readouterr().err)
    assert len(error) < 600
    assert re.search(said, error), error


@pytest.mark.parametrize("case", MODELS)
def test_a_wrong_model_is_refused_in_a_sentence(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make, said = MODELS[case]
    path = tmp_path / "m.onnx"
    save(make(), path)
    _fails(["build", str(path), "--emit", "te"], said, capsys)


FILES = {
    "missing": (None, "No such file"),
    "empty": (b"", "is not a model of ONNX"),
    "text": (b"hello, this is no model", "is not a model of ONNX"),
    "truncated": (_relu().SerializeToString()[:40], "is not a model of ONNX|is not a valid model"),
    "zeros": (bytes(1000), "is not a model of ONNX"),
}


@pytest.mark.parametrize("case", FILES)
def test_a_wrong_file_is_refused_in_a_sentence(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content, said = FILES[case]
    path = tmp_path / "m.onnx"
    if content is not None:
        path.write_bytes(content)
    _fails(["run", str(path)], said, capsys)
    _fails(["tune", str(path), "--trials", "1", "--no-database"], said, capsys)


def test_a_folder_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "m.onnx"
    folder.mkdir()
    _fails(["build", str(folder), "--emit", "te"], "Is a directory", capsys)


OPTIONS = {
    "unknown dimension": (["--shape", "M=3"], "no symbolic dimension 'M'; it has N"),
    "unknown input": (["--shape", "z=1,2"], "no input 'z'; it has x"),
    "another rank": (["--shape", "x=1,2,3"], "has 2 dimensions"),
    "another static extent": (["--shape", "x=1,2"], "has extent 3 where 2 is stated"),
    "zero": (["--shape", "N=0"], "extents are integers of at least 1"),
    "bound twice": (["--shape", "N=1", "--shape", "N=2"], "binds one name twice"),
    "two values": (["--shape", "N=1", "--shape", "x=2,3"], "is stated as 1 and as 2"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_a_wrong_shape_is_refused_in_a_sentence(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    options, said = OPTIONS[case]
    path = tmp_path / "m.onnx"
    save(_with_dimension(dim_param="N"), path)
    _fails(["build", str(path), "--emit", "te", *options], said, capsys)


COMMANDS = ("bench", "check", "explain", "hash", "run", "space", "tune")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_shape_is_for_models(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _fails([command, "softmax:4x8", "--shape", "N=1"], "softmax:4x8 is no file.onnx: --shape is for models", capsys)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_unbound_dimensions(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.onnx"
    save(_with_dimension(dim_param="N"), path)
    _fails([command, str(path)], "the dimensions N are not bound: .* --shape N=1", capsys)
