"""Models of ONNX: node tests of the package onnx, control flow, functions, weights, shapes, names."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import compiler
from compiler.interpret.te import evaluate
from compiler.support import plugins
from compiler.support.errors import InputError
from compiler.support.plugins import PluginError
from examples.network import PATH, network
from tests.onnx_edges import STEP as EDGE_STEP
from tests.onnx_edges import UNJUDGED, judged
from tests.onnx_nodes import CRASHED, PASSED, STEP, WRONG, cases, interpreted, outcome, written
from tests.onnx_probes import Probe, probes
from tests.sample import some

pytestmark = pytest.mark.doors


@pytest.mark.parametrize("runner", ("node", "simple", "light"))
def test_backend_tests_are_right_or_refused(runner: str) -> None:
    chosen = some([case for case in cases() if case.runner == runner], 3 * STEP if runner == "node" else STEP)
    outcomes = [outcome(case, written) for case in chosen]
    assert [(found.name, found.detail) for found in outcomes if found.kind in (WRONG, CRASHED)] == []
    assert outcomes


def test_node_tests_are_right_where_inputs_are_known() -> None:
    chosen = some([case for case in cases() if case.runner == "node"], STEP)
    outcomes = [outcome(case, interpreted, ahead=True) for case in chosen]
    assert [(found.name, found.detail) for found in outcomes if found.kind in (WRONG, CRASHED)] == []


def test_a_wrong_result_is_seen() -> None:
    case = next(case for case in cases() if case.name == "test_add")
    model, ((inputs, (expected,)),) = case.load()
    wrong = replace(case, load=lambda: (model, [(inputs, [expected + 1])]))
    assert outcome(case, interpreted).kind == PASSED
    assert outcome(wrong, interpreted).kind == WRONG


def test_edges_of_single_nodes_are_right() -> None:
    chosen = [probe for probe in some(probes(), 2 * EDGE_STEP + 1) if not _is_whole_mean(probe)]
    found = [judged(probe) for probe in chosen]
    assert [(str(each.probe), each.detail) for each in found if each.kind not in (PASSED, UNJUDGED)] == []


def _is_whole_mean(probe: Probe) -> bool:
    """Whether it is a mean of integers, which is rounded in another way than onnxruntime does."""
    return probe.operator == "ReduceMean" and probe.inputs[0].dtype.kind in "iu"


def test_a_wrong_edge_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    probe = Probe("Neg", 13, (np.array([0.0], np.float32),))
    assert judged(probe).kind == PASSED
    monkeypatch.setattr("tests.onnx_edges.by_runtime", lambda probe, model: [np.array([0.0], np.float32)])
    monkeypatch.setattr("tests.onnx_edges.by_reference", lambda probe, model: None)
    assert judged(probe).kind == WRONG


def _model(nodes: list[Any], outputs: tuple[str, ...] = ("y",), **stored: Any) -> onnx.ModelProto:
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [value("x", TensorProto.FLOAT, ["N", 4])],
        [value(name, TensorProto.FLOAT, (None, None)) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in stored.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def _agrees(model: onnx.ModelProto, runtime: bool = False) -> compiler.frontends.model.Imported:
    """Import a model, and compare the results with those of ONNX's evaluator, or of onnxruntime."""
    actual = compiler.from_onnx(model, {"N": 3})
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    if runtime:
        oracle = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    else:
        oracle = ReferenceEvaluator(model)
    outputs = evaluate(actual.function.module, [x, *actual.constants.values()])
    for output, wanted in zip(outputs, oracle.run(None, {"x": x}), strict=True):
        np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-6)
    return actual


def _branch(operator: str, name: str) -> onnx.GraphProto:
    output = helper.make_tensor_value_info(f"{name}_y", TensorProto.FLOAT, (None, None))
    return helper.make_graph([helper.make_node(operator, ["x"], [f"{name}_y"])], name, [], [output])


def _single(operator: str, opset: int, x: Any, *stored: Any, **attributes: Any) -> Any:
    """The result of one node on an array, its other inputs stored in the model."""
    dtype = helper.np_dtype_to_tensor_dtype(x.dtype)
    names = [f"c{n}" if array.size else "" for n, array in enumerate(stored)]
    graph = helper.make_graph(
        [helper.make_node(operator, ["x", *names], ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info("x", dtype, x.shape)],
        [helper.make_empty_tensor_value_info("y")],
        [numpy_helper.from_array(array, name) for array, name in zip(stored, names, strict=True) if name],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    program = compiler.from_onnx(onnx.shape_inference.infer_shapes(model))
    given = [program.constants.get(tensor.name, x) for tensor in program.function.inputs]
    return evaluate(program.function.module, given)[0]


@pytest.mark.parametrize("axis", [0, 1, 2, -2, None])
@pytest.mark.parametrize("operator", ["Hardmax", "Softmax", "LogSoftmax"])
def test_maxima_of_all_dimensions_from_an_axis_on(operator: str, axis: int | None) -> None:
    """As before opset 13."""
    x = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
    attributes = {} if axis is None else {"axis": axis}
    matrix = x.reshape(int(np.prod(x.shape[: (1 if axis is None else axis % 3)])), -1)
    powers = np.exp(matrix - matrix.max(1, keepdims=True))
    share = powers / powers.sum(1, keepdims=True)
    wanted = {"Hardmax": powers == 1, "Softmax": share, "LogSoftmax": np.log(share)}[operator]
    np.testing.assert_allclose(_single(operator, 11, x, **attributes).reshape(matrix.shape), wanted, 1e-5, 1e-6)


@pytest.mark.parametrize("scale", [1.5, 2.0, 2.25])
@pytest.mark.parametrize(("operator", "opset"), [("Upsample", 9), ("Resize", 10)])
def test_places_before_there_were_coordinate_transformations(operator: str, opset: int, scale: float) -> None:
    x = np.random.default_rng(0).standard_normal(7).astype(np.float32)
    places = np.arange(int(7 * scale)) / scale
    factor = np.float32([scale])
    near, mixed = (_single(operator, opset, x, factor, mode=mode) for mode in ("nearest", "linear"))
    np.testing.assert_array_equal(near, x[np.floor(places).astype(int)])
    np.testing.assert_allclose(mixed, np.interp(places, np.arange(7), x), 1e-5, 1e-6)


def test_places_are_rounded_to_f32_as_onnxruntime_does() -> None:
    x, nothing = np.arange(60, dtype=np.float32), np.zeros(0, np.float32)
    for scale in (0.3, 0.6, 0.7, 1.1, 2.3):
        factor = np.float32([scale])
        near = _single(
            "Resize", 13, x, nothing, factor, coordinate_transformation_mode="asymmetric", nearest_mode="floor"
        )
        np.testing.assert_array_equal(near, np.floor(np.arange(len(near), dtype=np.float32) / factor))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_integers_are_reduced_towards_zero(dtype: Any) -> None:
    x = np.array([[-3, -4], [3, 4], [7, 1]], dtype)
    reals, axes = x.astype(np.float64), np.array([1])
    wanted = {
        "ReduceMean": reals.mean(1),
        "ReduceL2": np.sqrt((reals**2).sum(1)),
        "ReduceLogSumExp": np.log(np.exp(reals).sum(1)),
    }
    for operator, exact in wanted.items():
        result = _single(operator, 18, x, axes, keepdims=0)
        assert result.dtype == dtype
        np.testing.assert_array_equal(result, np.trunc(exact))
    np.testing.assert_array_equal(_single("ReduceLogSum", 18, abs(x), axes, keepdims=0), [1, 1, 2])


def test_remainders_of_large_quotients() -> None:
    x, by = np.float32([1e8, 1e10, 1e20, -1e20]), np.float32([3, 3, 3, 7])
    np.testing.assert_array_equal(_single("Mod", 17, x, by, fmod=1), np.fmod(x, by))


def test_a_branch_that_data_take_is_selected() -> None:
    sides = {"then_branch": _branch("Relu", "a"), "else_branch": _branch("Neg", "b")}
    total = helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0)
    truth = helper.make_node("Greater", ["s", "zero"], ["c"])
    _agrees(_model([total, truth, helper.make_node("If", ["c"], ["y"], **sides)], zero=np.float32(0)))


@pytest.mark.parametrize(
    "ways",
    (
        {},
        {"scan_input_directions": [1], "scan_output_directions": [1]},
        {"scan_input_axes": [1], "scan_output_axes": [1]},
    ),
)
def test_a_scan_is_unrolled(ways: dict[str, list[int]]) -> None:
    value, across = helper.make_tensor_value_info, bool(ways.get("scan_input_axes"))
    nodes = [helper.make_node("Add", ["s", "r"], ["t"]), helper.make_node("Mul", ["t", "t"], ["o"])]
    size = (3,) if across else (4,)
    body = helper.make_graph(
        nodes, "b", *([value(n, TensorProto.FLOAT, size) for n in names] for names in ("sr", "to"))
    )
    scan = helper.make_node("Scan", ["first", "x"], ["last", "y"], body=body, num_scan_inputs=1, **ways)
    _agrees(_model([scan], first=np.ones(size, np.float32)), runtime=True)


ATTENTION: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (23, {}),
    "softcap": (23, {"softcap": 0.5}),
    "causal": (24, {"softcap": 0.5, "is_causal": 1}),
    "by ONNX's function": (24, {"softcap": 0.5, "softmax_precision": 1}),
    "in a window": (25, {"left_window_size": 1, "right_window_size": 0}),
}
"""Opsets and attributes of attention."""


@pytest.mark.parametrize("bits", (False, True))
@pytest.mark.parametrize("case", ATTENTION)
def test_attention_of_rows_without_keys_is_zero(case: str, bits: bool) -> None:
    opset, attributes = ATTENTION[case]
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip("this onnx has no such opset")
    kept = np.array([[True, False, True], [False, False, False], [True, True, False]])
    mask = kept if bits else np.where(kept, np.float32(0.5), np.float32(-np.inf))
    nodes = [
        helper.make_node("Reshape", ["x", "heads"], ["q"]),
        helper.make_node("Attention", ["q", "q", "q", "mask"], ["a"], **attributes),
        helper.make_node("Reshape", ["a", "rows"], ["y"]),
    ]
    model = _model(nodes, heads=np.array([1, 1, 3, 4]), rows=np.array([3, 4]), mask=mask)
    model.opset_import[0].version = opset
    _agrees(model)


def test_shapes_and_weights_are_computed_ahead() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "first"], ["n"]),
        helper.make_node("Concat", ["n", "rest"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("Transpose", ["w"], ["v"]),
        helper.make_node("MatMul", ["r", "v"], ["y"]),
    ]
    stored = {"first": np.array([0]), "rest": np.array([-1]), "w": np.ones((5, 4), np.float32)}
    actual = _agrees(_model(nodes, **stored))
    assert [array.shape for array in actual.constants.values()] == [(4, 5)]


def test_names_are_those_of_the_model() -> None:
    nodes = [helper.make_node("Add", ["x", "layer/0:w"], ["a"]), helper.make_node("Relu", ["a"], ["y"])]
    actual = _agrees(_model(nodes, ("y", "a"), **{"layer/0:w": np.arange(12, dtype=np.float32).reshape(3, 4)}))
    assert [tensor.name for tensor in actual.function.inputs] == ["x", "layer_0_w"]
    assert "return %y, %a" in str(actual.function)


def test_external_data_are_read(tmp_path: Path) -> None:
    model = _model([helper.make_node("MatMul", ["x", "w"], ["y"])], w=np.ones((4, 6), np.float32))
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    actual = compiler.from_onnx(tmp_path / "m.onnx", {"N": 3})
    assert actual.constants["w"].tolist() == np.ones((4, 6)).tolist()


def test_what_a_handler_does_not_support_is_refused() -> None:
    from compiler.support.errors import InputError

    with pytest.raises(InputError, match="it clips its sums"):
        w, r = np.ones((1, 2, 4), np.float32), np.ones((1, 2, 2), np.float32)
        rows = helper.make_node("Unsqueeze", ["x", "axis"], ["u"])
        node = helper.make_node("RNN", ["u", "w", "r"], ["y"], hidden_size=2, clip=1.0)
        compiler.from_onnx(_model([rows, node], w=w, r=r, axis=np.array([1])), {"N": 3})


def test_the_shipped_network_is_native_and_right() -> None:
    assert PATH.read_bytes() == network().SerializeToString(), "run python -m examples.network"
    kernel = compiler.build(compiler.from_onnx(PATH, {"N": 1}), schedule="written", threads=1)
    image = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
    expected = ReferenceEvaluator(str(PATH)).run(None, {"image": image})[0]
    np.testing.assert_allclose(kernel(image=image), expected, rtol=1e-4, atol=1e-6)


PLUGIN = """
import numpy as np
from strata import te
from strata.frontends import Refused


def register(registry):
    @registry.onnx_operator("Affine", domain="com.mine")
    def affine(node):
        if node.attribute("mode", "plain") != "plain":
            raise Refused("its mode is not plain")
        scaled = te.nn.mul(node.tensor(0), float(node.attribute("alpha", 1.0)))
        return te.nn.add(scaled, node.tensor(1), name=node.name)

    @registry.onnx_operator("Unique")
    def unique(node):
        BODY
"""


def _affine(**attributes: Any) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Affine", ["b", "b"], ["c"], domain="com.mine"),  # its inputs are known
        helper.make_node("Affine", ["x", "c"], ["y"], domain="com.mine", **attributes),
    ]
    model = _model(nodes, b=np.arange(4, dtype=np.float32))
    model.opset_import.append(helper.make_opsetid("com.mine", 1))
    return model


def test_an_operator_of_a_plugin(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(PLUGIN.replace("BODY", "1 / 0"))
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    with pytest.raises(InputError, match=r"'com.mine'; a plugin's `onnx_operator` or a function in the model's"):
        compiler.from_onnx(_affine(), shapes={"N": 2})
    with plugins.loaded([str(path)]):
        assert {"com.mine.Affine", "Unique"} == plugins.parts("ONNX operator").keys()
        model = compiler.from_onnx(_affine(alpha=2.0), shapes={"N": 2})
        (found,) = evaluate(model.function.module, [x, *model.constants.values()])
        np.testing.assert_allclose(found, 2 * x + 2 * np.arange(4), rtol=1e-6)
        with pytest.raises(InputError, match="its mode is not plain"):
            compiler.from_onnx(_affine(mode="other"), shapes={"N": 2})
        with pytest.raises(InputError, match="its attribute 'beta' is not supported"):
            compiler.from_onnx(_affine(beta=1.0), shapes={"N": 2})
        unique = _model([helper.make_node("Unique", ["x"], ["y"])])
        with pytest.raises(PluginError, match="plugin mine: ONNX operator Unique failed: ZeroDivisionError"):
            compiler.from_onnx(unique, shapes={"N": 2})
    path.write_text(PLUGIN.replace("BODY", "return 3"))
    with plugins.loaded([str(path)]), pytest.raises(PluginError, match="operator Unique: it gave 3; it gives a te"):
        compiler.from_onnx(unique, shapes={"N": 2})
    for name in ("Relu", "If"):
        path.write_text(PLUGIN.replace("BODY", "pass").replace("Unique", name))
        with pytest.raises(PluginError, match=f"cannot add the ONNX operator '{name}': the compiler has one"):
            plugins.load_file(str(path))


def _of_ml(node: onnx.NodeProto, x: np.ndarray[Any, Any], shape: tuple[int, ...]) -> Any:
    """The result of a node, interpreted, and of ONNX's reference evaluator."""
    kind = helper.np_dtype_to_tensor_dtype(x.dtype)
    given, result = (helper.make_tensor_value_info(n, kind, s) for n, s in (("x", x.shape), ("y", shape)))
    if node.op_type == "Scaler":
        result = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(helper.make_graph([node], "g", [given], [result]), opset_imports=opsets, ir_version=9)
    read = compiler.from_onnx(model)
    (found,) = evaluate(read.function.module, [x, *read.constants.values()])
    return found, ReferenceEvaluator(model).run(None, {"x": x})[0]


@pytest.mark.parametrize("dtype", ("float32", "float64", "int64"))
@pytest.mark.parametrize("threshold", (0.5, -1.5, -2.0, 3e38))
def test_binarizer(dtype: str, threshold: float) -> None:
    x = np.array([[-2, -1, 0], [1, 2, 3]], dtype) * (1 if dtype == "int64" else 0.5)
    node = helper.make_node("Binarizer", ["x"], ["y"], domain="ai.onnx.ml", threshold=threshold)
    found, expected = _of_ml(node, x.astype(dtype), (2, 3))
    assert found.dtype == dtype and np.array_equal(found, expected)


@pytest.mark.parametrize("dtype", ("float32", "float64", "int32"))
def test_scaler(dtype: str) -> None:
    x = np.arange(6).reshape(2, 3).astype(dtype)
    for offset, scale in (([0.5, 1.0, 2.0], [2.0, 3.0, 0.5]), ([0.5], [2.0])):
        node = helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml", offset=offset, scale=scale)
        found, _ = _of_ml(node, x, (2, 3))
        np.testing.assert_allclose(found, (x - np.float32(offset)) * np.float32(scale), rtol=1e-6)
        assert found.dtype == np.float32


@pytest.mark.parametrize("shape", ((2, 2), (5, 3, 3), (2, 3, 4, 4), (3, 1, 1)))
def test_determinants(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    found, expected = _of_ml(helper.make_node("Det", ["x"], ["y"]), x, shape[:-2])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="up to 4 rows, not 5"):
        _of_ml(helper.make_node("Det", ["x"], ["y"]), np.ones((5, 5), np.float32), ())
