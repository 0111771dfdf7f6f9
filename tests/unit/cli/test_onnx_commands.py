"""Commands on a model of ONNX whose dimensions --shape binds: its groups have the same names in all of them."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("onnx")

from compiler.__main__ import main
from compiler.graph.canonical import canonical_hash
from compiler.pipeline.models import from_onnx
from examples.network import PATH

pytestmark = pytest.mark.doors


def _printed(capsys: pytest.CaptureFixture[str], command: str, *options: str) -> str:
    assert main([command, str(PATH), "--shape", "N=1", *options]) == 0
    return capsys.readouterr().out


def test_groups_have_one_name(capsys: pytest.CaptureFixture[str]) -> None:
    names = [group["name"] for group in json.loads(_printed(capsys, "explain", "--json"))]
    *_, last = names
    listed = _printed(capsys, "space", "--threads", "1").splitlines()[1:]
    assert [line.split(",")[0] for line in listed] == [f"network.{name}" for name in names]
    assert f"@{last}(" in _printed(capsys, "explain", "--group", last, "--static")
    assert f"{last}_classes" in _printed(capsys, "check", "--group", last)


def test_a_model_has_the_hash_of_its_function(capsys: pytest.CaptureFixture[str]) -> None:
    module = from_onnx(PATH, {"N": 1}).function.module
    assert _printed(capsys, "hash") == f"{canonical_hash(module)} network\n"
