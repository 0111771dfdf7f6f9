"""The server over its standard streams, with a scripted client: it needs pygls."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiler.__main__ import main
from tests.lsp_client import ROOT, Client

pytestmark = pytest.mark.doors
URI = "file:///no/folder/t.mlir"
PLUGIN = """
import os
from dataclasses import dataclass
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class Mine(ModulePass):
    name = "mine"
    how: str = ""

    def apply(self, ctx, op):
        if self.how == "ends":
            os._exit(3)
        while self.how == "hangs":
            pass

def register(registry):
    registry.pass_(Mine)
"""
EXAMPLE = (ROOT / "examples" / "mm_exp_mm.mlir").read_text()


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    pytest.importorskip("pygls")
    opened = Client()
    yield opened
    assert opened.close() == 0, opened.errors.decode()


def test_diagnostics_while_typing(client: Client) -> None:
    assert client.open(URI, EXAMPLE) == []
    (error,) = client.change(URI, EXAMPLE.replace("l = 48, reduce", "l = 49, reduce"))
    assert "out of bounds" in error["message"] and error["severity"] == 1 and error["source"] == "strata"
    line = EXAMPLE[: EXAMPLE.index("%B[k, l]")].count("\n")
    assert error["range"]["start"]["line"] == line
    (error,) = client.change(URI, EXAMPLE.replace("math.exp", "math.exq"))
    assert "math.exq is not registered" in error["message"]
    assert client.change(URI, EXAMPLE) == []


def test_questions_about_a_value(client: Client) -> None:
    hovered = client.at("hover", URI, EXAMPLE, "%X =")
    assert "%X : tensor<64x48xf32>" in hovered["contents"]["value"]
    (definition,) = client.at("definition", URI, EXAMPLE, "%X[m, l]")
    assert definition["range"] == hovered["range"]
    there = client.at("references", URI, EXAMPLE, "%X =", context={"includeDeclaration": True})
    assert len(there) == len(client.at("documentHighlight", URI, EXAMPLE, "%X =")) == 2
    edits = client.at("rename", URI, EXAMPLE, "%X =", newName="Y")["changes"][URI]
    assert [edit["newText"] for edit in edits] == ["%Y", "%Y"]
    assert client.at("rename", URI, EXAMPLE, "%X =", newName="T") is None
    assert client.notes.pop()["params"]["message"] == "'%T' is used already"
    assert client.at("prepareRename", URI, EXAMPLE, "te.compute", 1) is None


def test_completion_has_documentation_when_it_is_shown(client: Client) -> None:
    proposals = client.at("completion", URI, EXAMPLE, 'te.compute "T"', 3)["items"]
    proposal = next(proposal for proposal in proposals if proposal["label"] == "te.compute")
    assert "documentation" not in proposal
    assert "Compute whole tensors" in client.ask("completionItem/resolve", **proposal)["documentation"]["value"]


def test_outline_folds_lenses_and_ir(client: Client) -> None:
    document = {"uri": URI}
    (function,) = client.ask("textDocument/documentSymbol", textDocument=document)
    assert [child["name"] for child in function["children"]] == ["T", "X", "C"]
    assert len(client.ask("textDocument/foldingRange", textDocument=document)) == 6
    lenses = client.ask("textDocument/codeLens", textDocument=document)
    lens = next(lens for lens in lenses if lens["command"]["title"] == "after te-to-loop")
    uri, piece, count, _ = lens["command"]["arguments"]
    assert "loop.alloc" in client.ask("strata/irAfter", uri=uri, piece=piece, count=count)["text"]
    client.change(URI, EXAMPLE.replace("math.exp", "math.exq"))
    assert "has errors" in client.ask("strata/irAfter", uri=uri, piece=piece, count=count)["error"]


def test_refusals_of_scripts_come_from_the_worker(client: Client) -> None:
    path = ROOT / "tests" / "filecheck" / "schedule" / "reverse_reject.mlir"
    uri, text = path.as_uri(), path.read_text()
    assert client.open(uri, text) == []
    diagnostics = client.later(uri)
    witnesses = [diagnostic for diagnostic in diagnostics if "relatedInformation" in diagnostic]
    assert {diagnostic["severity"] for diagnostic in diagnostics} == {3} and len(witnesses) == 1
    assert [place["message"] for place in witnesses[0]["relatedInformation"]] == ["T[7]", "S[7]"]
    client.tell("textDocument/didClose", textDocument={"uri": uri})


def test_passes_that_end_the_worker_or_take_too_long_are_information(tmp_path: Path) -> None:
    pytest.importorskip("pygls")
    plugin = tmp_path / "mine.py"
    plugin.write_text(PLUGIN)
    slow = Client("--load", str(plugin), "--limit", "2")
    for how, sentence in (("ends", "the worker process failed"), ("hangs", "not done after 2 seconds")):
        uri = f"file:///no/folder/{how}.mlir"
        assert slow.open(uri, f"// RUN: strata-opt %s -p 'mine{{how={how}}}'\n{EXAMPLE}") == []
        (information,) = slow.later(uri)
        assert information["severity"] == 3 and sentence in information["message"]
        assert information["range"]["start"] == {"line": 0, "character": 0}
    assert slow.close() == 0


def test_quick_fix(client: Client) -> None:
    text = "// RUN: strata-opt %s --verify-diagnostics\n" + EXAMPLE.replace("l = 48, reduce", "l = 49, reduce")
    uri = "file:///no/folder/expected.mlir"
    (error,) = client.open(uri, text)
    context = {"diagnostics": [error]}
    (fix,) = client.ask("textDocument/codeAction", textDocument={"uri": uri}, range=error["range"], context=context)
    assert "expected-error@below {{the read of 'B'" in fix["edit"]["changes"][uri][0]["newText"]


def test_without_pygls_it_is_a_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("pygls", "lsprotocol")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "compiler.lsp.server", raising=False)
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    assert main(["lsp"]) == 1
    assert (
        capsys.readouterr().err
        == "strata: error: the language server needs pygls: pip install 'strata-compiler[lsp]'\n"
    )


def test_a_port_in_use_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pygls")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["lsp", "--tcp", str(port)]) == 1
    assert f"the port {port} cannot be used: Address already in use" in capsys.readouterr().err


def test_a_client_that_leaves_or_sends_no_json_ends_nothing_else() -> None:
    pytest.importorskip("pygls")
    for sent in (b"", b"nonsense\n", b"Content-Length: 4\r\n\r\n{{{{"):
        command = [sys.executable, "-m", "compiler", "lsp"]
        done = subprocess.run(command, cwd=ROOT, input=sent, capture_output=True, timeout=60)
        assert done.returncode == 0 and b"compiler/lsp" not in done.stderr, done.stderr
