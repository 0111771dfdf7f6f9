"""The folder of VS Code: its files parse, and the grammar's patterns match what they are for."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiler.dialects.loop import KINDS
from compiler.lsp.lenses import IR_AFTER, VIEW

FOLDER = Path(__file__).parents[3] / "editors" / "vscode"
GRAMMAR: dict[str, Any] = json.loads((FOLDER / "syntaxes" / "mlir.tmLanguage.json").read_text())


def rules(name: str) -> Iterator[tuple[str, str]]:
    """The scopes and patterns of a part of the grammar, in order."""
    part = GRAMMAR["repository"][name]
    for rule in part.get("patterns", [part]) if "begin" not in part else [part]:
        captures = [capture["name"] for capture in rule.get("captures", {}).values()]
        yield rule.get("name") or captures[0], rule.get("match") or f"{rule['begin']}.*?{rule['end']}"


def scope(text: str) -> str:
    """The scope of the first rule that matches at the start of a text, or behind blanks."""
    for include in GRAMMAR["patterns"]:
        for name, pattern in rules(include["include"].removeprefix("#")):
            if re.compile(pattern, re.MULTILINE).match(text):
                return name.removesuffix(".mlir")
    return ""


@pytest.mark.parametrize(
    "text, expected",
    [
        ("// RUN: strata-opt %s", "comment.line.directive"),
        ("// CHECK-NEXT: loop.for", "comment.line.directive"),
        ("// -----", "comment.line.split"),
        ("// expected-error@below {{x}}", "comment.line.expected"),
        ("// a comment", "comment.line.double-slash"),
        ('"te.compute"', "string.quoted.double"),
        ("%i.0 = 4", "variable.other"),
        ("%t#1", "variable.other"),
        ("@mm_exp_mm(", "entity.name.function"),
        ("^bb0:", "entity.name.label"),
        ("!sched.loop", "entity.name.type.dialect"),
        ("tensor<8x?xf32>", "storage.type"),
        ("f32,", "storage.type"),
        ("f8E4M3FN", "storage.type"),
        ("te.compute ", "keyword.other.op"),
        ("loop.for ", "keyword.other.op"),
        ("sched.split %i", "entity.name.tag.primitive"),
        ("mine.op %x", "keyword.other.op"),
        ("reduce k = 4", "storage.modifier"),
        ("combine [add]", "keyword.control"),
        ("outputs = 1", "entity.other.attribute-name"),
        ("0x7F800000", "constant.numeric.hex"),
        ("-1.5e-3", "constant.numeric"),
        ("true", "constant.language"),
        ("#map", "constant.other.alias"),
        *((f"{kind} {{", "storage.modifier") for kind in KINDS),
    ],
)
def test_the_grammar_tells_words_apart(text: str, expected: str) -> None:
    assert scope(text) == expected


def test_every_part_of_the_grammar_is_used() -> None:
    assert {f"#{name}" for name in GRAMMAR["repository"]} == {rule["include"] for rule in GRAMMAR["patterns"]}


def test_the_package_names_files_that_are_there_and_the_commands_of_lenses() -> None:
    package = json.loads((FOLDER / "package.json").read_text())
    (language,), (grammar,) = package["contributes"]["languages"], package["contributes"]["grammars"]
    assert grammar["scopeName"] == GRAMMAR["scopeName"] and grammar["language"] == language["id"]
    for name in (package["main"], language["configuration"], grammar["path"]):
        assert (FOLDER / name).is_file()
    json.loads((FOLDER / language["configuration"]).read_text())
    script = (FOLDER / "extension.js").read_text()
    assert all(f'registerCommand("{command}"' in script for command in (IR_AFTER, VIEW, "strata.restart"))
    settings = set(re.findall(r'settings\.get\("(\w+)"\)', script))
    assert {f"strata.{name}" for name in settings} == set(package["contributes"]["configuration"]["properties"])


STUB = """
const Module = require("module"), load = Module._load, commands = {}, calls = [];
const settings = { command: ["py", "-m", "compiler"], limit: 7, plugins: ["a.py"] };
const vscode = {
  EventEmitter: class { fire() {} },
  Uri: { parse: (text) => ({ path: new URL(text).pathname }), from: (parts) => parts },
  ViewColumn: { Beside: -2 },
  commands: { registerCommand: (name, run) => { commands[name] = run; } },
  window: { showErrorMessage: (text) => calls.push(text), showTextDocument: (shown) => calls.push(shown) },
  workspace: {
    getConfiguration: () => ({ get: (name) => settings[name] }),
    registerTextDocumentContentProvider: (scheme, provider) => { vscode.provider = provider; },
    openTextDocument: async (uri) => `${uri.path}: ${await vscode.provider.provideTextDocumentContent(uri)}`,
  },
};
class LanguageClient {
  constructor(id, name, server, options) { calls.push([server.command, ...server.args]); }
  async start() {}
  async stop() { calls.push("stopped"); }
  async sendRequest(method, params) { return params.count < 9 ? { text: method } : { error: "too many" }; }
}
Module._load = (name, ...more) => name === "vscode" ? vscode
  : name === "vscode-languageclient/node" ? { LanguageClient, TransportKind: { stdio: 0 } } : load(name, ...more);
const extension = require(process.argv[1]);
(async () => {
  await extension.activate({ subscriptions: [] });
  await commands["strata.irAfter"]("file:///a/mm.mlir", 0, 2, "after te-to-loop");
  await commands["strata.irAfter"]("file:///a/mm.mlir", 0, 9, "after x");
  await extension.deactivate();
  console.log(JSON.stringify(calls));
})();
"""
"""A stand-in for VS Code, which prints what the extension does."""


def test_the_extension_starts_the_server_and_shows_the_ir() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    command = [node, "-e", STUB, str(FOLDER / "extension.js")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [
        ["py", "-m", "compiler", "lsp", "--limit", "7", "--load", "a.py"],
        "/mm after te-to-loop.mlir: strata/irAfter",
        "/mm after x.mlir: // too many\n",
        "stopped",
    ]
