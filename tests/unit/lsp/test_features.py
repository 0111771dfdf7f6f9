"""The features of the language server, on snapshots of texts; `|` in a text is the cursor."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from compiler.lsp import lenses, navigation, symbols
from compiler.lsp.analysis import ERROR, INFORMATION, Finding, analyse
from compiler.lsp.checks import deep_findings, ir_after
from compiler.lsp.completion import completions, proposal_documentation
from compiler.lsp.hover import hover
from compiler.lsp.snapshot import Snapshot
from compiler.lsp.text import Text, TextRange
from compiler.support.errors import InputError

FILES = Path(__file__).parents[2] / "filecheck"
TE = """func.func @f(%A: tensor<8xf32>) -> tensor<8xf32> {
  %E = te.compute "E" [i = 8] (%a = %A[i] : tensor<8xf32>) -> tensor<8xf32> {
    %x = math.exp %a : f32
    te.yield %x : f32
  }
  func.return %E : tensor<8xf32>
}
"""
LOOP = """func.func @f(%A: memref<8x4xf32>, %D: memref<8x4xf32>) attributes {outputs = 1 : i64} {
  loop.for "i" %i = 8 {
    loop.for "j" %j = 4 {
      loop.block "D" [x = 8 at %i, y = 4 at %j]
          (%a = %A[x, y] : memref<8x4xf32>) -> (%D[x, y] : memref<8x4xf32>) origin "D"[x, y] {
        %0 = math.exp %a : f32
        loop.yield %0 : f32
      }
    }
  }
  func.return
}
"""
SCRIPT = """transform.named_sequence @s(%f: !transform.any_op {transform.readonly}) {
  %c = sched.get_block %f "D"
  %i, %j = sched.get_loops %c : !sched.loop, !sched.loop
  STEP
  transform.yield
}
"""
LOW = """func.func @g(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %c0 to %c8 step %c1 {
    %four = arith.constant 4 : index
    %p = arith.muli %i, %four : index
    %q = arith.addi %p, %c1 : index
  }
  func.return
}
"""


def of(text: str, path: str = "t.mlir") -> Snapshot:
    return Snapshot.of(Path(path), text)


def at(text: str, word: str, shift: int = 1) -> int:
    return text.index(word) + shift


def shown(text: str, part: TextRange) -> str:
    return text[part.start : part.end]


def said(text: str, findings: list[Finding]) -> list[tuple[str, str]]:
    return [(shown(text, finding.range), finding.sentence) for finding in findings]


def explained(text: str, word: str, shift: int = 1) -> str:
    explanation = hover(of(text), at(text, word, shift))
    assert explanation is not None
    return explanation.text


@pytest.mark.parametrize("encoding, column", [("utf-8", 6), ("utf-16", 3), ("utf-32", 2)])
def test_columns_are_in_the_units_of_the_client(encoding: str, column: int) -> None:
    lines = Text("a\r\né𝒳b\nc", encoding)
    assert lines.position(5) == (1, column)
    assert [lines.offset(*lines.position(n)) for n in (0, 1, 3, 4, 5, 6, 7)] == [0, 1, 3, 4, 5, 6, 7]
    assert lines.offset(1, 99) == 6 and lines.offset(9, 0) == 8 and lines.position(99) == (2, 1)


def test_each_function_with_a_syntax_error_is_named() -> None:
    text = TE.replace("math.exp", "math.exq") + TE.replace("@f", "@g").replace("return %E", "return %Q")
    assert said(text, of(text).findings) == [
        ("math.exq", "Operation math.exq is not registered"),
        ("%Q", "%Q is used but not defined"),
    ]


def test_verifier_errors_of_several_ops_are_at_what_they_quote() -> None:
    text = TE.replace("%x : f32\n  }", "%x, %x : f32, f32\n  }") + TE.replace("@f", "@g").replace("%A[i]", "%A[i + 1]")
    text += LOOP.replace("@f", "@h").replace("%j = 4", "%j = 5")
    assert [(word, sentence[:20]) for word, sentence in said(text, of(text).findings)] == [
        ('"E"', "the results of 'E' m"),
        ("%A", "the read of 'A' is o"),
        ("y", "axis 'y' of block 'D"),
    ]


def test_a_function_that_is_not_closed_is_named() -> None:
    (finding,) = of(TE.removesuffix("}\n") + TE.replace("@f", "@g")).findings
    assert [place.sentence for place in finding.related] == ["this is not closed"]
    assert finding.related[0].range == TextRange(0, len("func.func"))


def test_an_empty_document_and_one_of_comments_have_no_findings() -> None:
    assert of("").findings == of("// nothing\n\n").findings == []


def test_expected_errors_are_information() -> None:
    text = "// RUN: strata-opt %s --verify-diagnostics\n" + TE.replace(
        "  %E = te", "  // expected-error@below {{out of bounds}}\n  %E = te"
    ).replace("%A[i]", "%A[i + 1]")
    assert {finding.severity for finding in of(text).findings} == {INFORMATION}
    unexpected = text.replace("out of bounds", "something else")
    assert {finding.severity for finding in of(unexpected).findings} == {ERROR}
    inverted = "// RUN: not strata-opt %s\n" + TE.replace("%A[i]", "%A[i + 1]")
    assert {finding.severity for finding in of(inverted).findings} == {INFORMATION}


def test_pieces_and_payloads_are_placed_in_the_document() -> None:
    path = FILES / "schedule" / "split_reject.mlir"
    text = path.read_text().replace("by [2, 4] :", "by [2, 4, 5] :")
    ((word, sentence),) = said(text, of(text, str(path)).findings)
    assert (word, sentence) == ("sched.split", "3 factors give as many loops, not 2")
    missing = of("// PAYLOAD: nothing\n", str(path))
    assert said(missing.text, missing.findings) == [("// PAYLOAD: nothing", "there is no payload 'nothing'")]


def test_a_pass_of_a_run_line_that_does_not_exist_is_marked() -> None:
    text = "// RUN: strata-opt %s -p te-to-loop,canonicalise\n" + TE
    ((word, sentence),) = said(text, of(text).findings)
    assert word == "canonicalise" and "no pass 'canonicalise'" in sentence


def test_a_refused_step_has_its_two_instances() -> None:
    text = LOOP.replace("%A[x, y] :", "%D[x - 1, y] where (x - 1 >= 0) else 0.0 :")
    text += SCRIPT.replace("STEP", "sched.parallel %i")
    snapshot = of(text)
    assert snapshot.findings == []
    (finding,) = deep_findings(snapshot)
    assert shown(text, finding.range) == "sched.parallel" and "depend on each other" in finding.sentence
    assert [(shown(text, place.range), place.sentence[:2]) for place in finding.related] == [("loop.block", "D[")] * 2
    assert deep_findings(of(LOOP + SCRIPT.replace("STEP", "sched.parallel %i"))) == []


def test_expected_refusals_of_run_lines_are_compared() -> None:
    path = FILES / "schedule" / "reverse_reject.mlir"
    text = path.read_text()
    assert {finding.severity for finding in deep_findings(of(text, str(path)))} == {INFORMATION}
    wrong = text.replace("reads", "writes")
    assert wrong != text
    sentences = [finding.sentence for finding in deep_findings(of(wrong, str(path))) if finding.severity == ERROR]
    assert any("was not produced" in sentence for sentence in sentences)


def test_ir_after_a_pass() -> None:
    assert 'loop.for "i" %i = 8 {' in ir_after(of(TE), 0, 2)
    with pytest.raises(InputError, match="the program has errors"):
        ir_after(of(TE.replace("math.exp", "math.exq")), 0, 1)
    with pytest.raises(InputError, match="line 2: loop-to-low takes the loop level"):
        ir_after(of("// RUN: strata-opt %s -p loop-to-low\n" + TE), 0, 1)


@pytest.mark.parametrize(
    "text, word, parts",
    [
        (TE, "%E =", ["%E : tensor<8xf32>", 'result of `te.compute` "E"', "8 elements, 32 bytes", "1 use"]),
        (TE, "%x =", ["%x : f32", "result of `math.exp`"]),
        (TE, "te.compute", ["spatial axis `i`: 0 to 7", "Compute whole tensors", "Attributes: `label`"]),
        (TE, "i = 8", ['spatial axis `i`: 0 to 7, of `te.compute` "E"']),
        (TE, "@f", ["func.func @f(%A: tensor<8xf32>) -> tensor<8xf32>"]),
        (LOOP, "%j =", ["%j : index", "values: 0 to 3", "its body runs 32 times in 2 loops", "`%A`: 1 x 4 elements"]),
        (LOOP, "loop.for", ["serial loop `i`: 0 to 7", "`%D`: 8 x 4 elements, 128 bytes", "Run the body"]),
        (LOOP, "x = 8", ["spatial axis `x`: 0 to 7, at `%i`"]),
        (LOW, "%q =", ["values: 1 to 29", "form: `1 + 4*%i`"]),
        (SCRIPT.replace("STEP", "sched.parallel %i"), "sched.parallel", ["Requires", "strata-opt -p 'parallel"]),
        (SCRIPT.replace("STEP", "%k = sched.fuse %i, %j"), "%i, %j =", ["!sched.loop", "consumed by `sched.fuse`"]),
        (SCRIPT.replace("STEP", "%t = sched.sample_categorical [4, 8, 16] decision 1"), "%t", ["4, 8 or 16, decided"]),
        (SCRIPT.replace("STEP", ""), "!sched.loop", ["The type of a handle on a loop"]),
        (LOOP + SCRIPT.replace("STEP", ""), '"D"\n', ['`loop.block` "D"', "spatial axis `y`"]),
        ("// RUN: strata-opt %s -p te-to-loop --split-input-file\n", "te-to-loop", ["**te-to-loop**"]),
        ("// RUN: strata-opt %s -p te-to-loop --split-input-file\n", "--split", ["treat the pieces"]),
        ("// RUN: strata-opt %s -p 'tile{block=C}'\n", "block=", ["option `block` of `tile`: str"]),
    ],
)
def test_hover(text: str, word: str, parts: list[str]) -> None:
    markdown = explained(text, word)
    assert [part for part in parts if part not in markdown] == [], markdown


def test_hover_between_words_and_in_comments_is_nothing() -> None:
    assert hover(of(TE), at(TE, "{\n  %E", 0)) is None
    assert hover(of("// %E\n" + TE), 4) is None


def test_definition_and_references() -> None:
    snapshot, use = of(TE), at(TE, "return %E", len("return "))
    (definition,) = navigation.definitions(snapshot, use)
    assert definition.start == TE.index("%E =")
    assert len(navigation.references(snapshot, use)) == 2 and len(navigation.references(snapshot, use, False)) == 1
    script = LOOP + SCRIPT.replace("STEP", "")
    (block,) = navigation.definitions(of(script), at(script, '%f "D"', 4))
    assert script[: block.start].endswith("loop.block ")
    call = "%E = func.call @f(%A) : (tensor<8xf32>) -> tensor<8xf32>\n"
    calls = TE + re.sub(r"%E = te.compute.*  }\n", call, TE.replace("@f", "@g"), flags=re.DOTALL)
    (symbol,) = navigation.definitions(of(calls), at(calls, "call @f", 6))
    assert symbol.start == TE.index("@f")


def test_names_in_a_function_with_a_syntax_error_are_known_up_to_it() -> None:
    text = TE.replace("te.yield %x :", "te.yield %x ;")
    (definition,) = navigation.definitions(of(text), at(text, "exp %a", 5))
    assert definition.start == text.index("%a")


def test_text_behind_a_syntax_error_is_explained_by_what_is_before_it() -> None:
    text = TE.replace("te.yield %x :", "te.yield %x ;")
    (definition,) = navigation.definitions(of(text), at(text, "return %E", 8)) or [None]
    assert definition is None  # te.compute, which defines it, has the error
    text = TE.replace("  func.return", "  nothing\n  func.return")
    (definition,) = navigation.definitions(of(text), at(text, "return %E", 8))
    assert definition.start == text.index("%E =") and "%E : tensor<8xf32>" in explained(text, "return %E", 8)
    assert "**func.return**" in explained(text, "func.return")
    assert [(s.name, [c.name for c in s.children]) for s in symbols.outline(of(text))] == [("@f", ["E"])]


def test_blocks_are_names_too() -> None:
    text = """func.func @h(%c: i1) {
  cf.cond_br %c, ^a, ^b
^a:
  cf.br ^b
^b:
  func.return
}
"""
    snapshot = of(text)
    assert snapshot.findings == []
    (definition,) = navigation.definitions(snapshot, at(text, "br ^b", 4))
    assert definition.start == text.index("^b:") and len(navigation.references(snapshot, definition.start)) == 3
    assert "predecessors: `^bb0`, `^a`" in explained(text, "^b:")


def test_uses_before_the_definition_are_uses() -> None:
    text = """func.func @h() {
  cf.br ^b
^a:
  %u = arith.addi %v, %v : i32
  func.return
^b:
  %v = arith.constant 1 : i32
  cf.br ^a
}
"""
    assert of(text).findings == [] and len(navigation.references(of(text), at(text, "%v = "))) == 3


def test_a_value_of_an_undefined_one_is_explained() -> None:
    text = LOW.replace("arith.addi %p, %c1", "arith.addi %p, %zz")
    assert said(text, of(text).findings) == [("%zz", "%zz is used but not defined")]
    assert "form: `4*%i + %zz`" in explained(text, "%q =")


def test_a_loop_touches_what_is_in_it() -> None:
    second = (
        LOOP.partition("{\n")[2]
        .replace('"i"', '"o"')
        .replace('"D"', '"E"')
        .replace("%A[", "%D[")
        .replace("(%D[", "(%E[")
    )
    text = LOOP.replace("%D: memref<8x4xf32>)", "%D: memref<8x4xf32>, %E: memref<8x4xf32>)").replace(
        "  func.return\n}\n", second
    )
    assert of(text).findings == []
    assert "`%A`" in explained(text, 'loop.for "i"') and "`%E`" not in explained(text, 'loop.for "i"')
    assert "`%E`" in explained(text, 'loop.for "o"') and "`%A`" not in explained(text, 'loop.for "o"')
    broken = text.replace("math.exp", "math.exq", 1)
    assert "touches" not in explained(broken, 'loop.for "i"')


def test_rename() -> None:
    edits = navigation.renamed(of(TE), at(TE, "%a ="), "b")
    assert [(TE[r.start : r.end], new) for r, new in edits] == [("%a", "%b"), ("%a", "%b")]
    assert {new for _, new in navigation.renamed(of(TE), at(TE, "@f"), "@g")} == {"@g"}
    for name, sentence in (("x", "used already"), ("b c", "not a name"), ("", "not a name")):
        with pytest.raises(InputError, match=sentence):
            navigation.renamed(of(TE), at(TE, "%a ="), name)
    with pytest.raises(InputError, match="have other names"):
        navigation.renamed(of(TE), at(TE, "te.compute"), "x")
    path = FILES / "schedule" / "split_reject.mlir"
    text = path.read_text()
    with pytest.raises(InputError, match="a name of a payload"):
        navigation.renamed(of(text, str(path)), at(text, "split %i", 7), "x")


def labels(text: str) -> list[str]:
    offset = text.index("|")
    text = text.replace("|", "", 1)
    proposals = completions(of(text), offset)
    assert all(proposal.range.touches(offset) for proposal in proposals)
    return [proposal.label for proposal in proposals]


@pytest.mark.parametrize(
    "text, there, missing",
    [
        (TE.replace("te.yield %x", "te.yield %|x"), ["%x", "%a"], ["%E", "%A"]),
        (TE.replace("%A[i]", "%|A[i]"), ["%A"], ["%E"]),
        ("%g = arith.constant 1 : i32\n" + TE.replace("%A[i]", "%|A[i]"), ["%A"], ["%g"]),
        (TE.replace("  func.return", "  func.ret|"), ["func.return", "func.call"], ["te.compute"]),
        (TE.replace("  func.return", "  te|\n  func.return"), ["te.compute", "te", "loop.for"], []),
        (TE.replace('"E" [i = 8]', '"E" [i = 8] combine [|]'), ["add", "max"], ["te.compute"]),
        (LOOP.replace("%i = 8 {", "%i = 8 par| {"), ["parallel", "vectorized"], []),
        (LOOP + SCRIPT.replace('"D"\n', '"|"\n'), ["D"], ["i"]),
        (SCRIPT.replace("STEP", "sched.|"), ["sched.split", "sched.include"], ["te.compute"]),
        (SCRIPT.replace("STEP", "sched.parallel %|"), ["%i", "%j", "%c", "%f"], []),
        (SCRIPT.replace("!sched.loop, ", "!|, "), ["!sched.loop"], []),
        ("// RUN: strata-opt %s -p te-|", ["te-to-loop", "te-group"], ["--timing"]),
        ("// RUN: strata-opt %s -p 'te-to-loop,|'", ["tile"], []),
        ("// RUN: strata-opt %s -p 'tile{|}'", ["block", "axes", "sizes"], ["te-to-loop"]),
        ("// RUN: strata-opt %s --ver|", ["--verify-diagnostics", "--te-to-loop"], []),
        ("// te.|", [], ["te.compute"]),
    ],
)
def test_completion(text: str, there: list[str], missing: list[str]) -> None:
    proposed = labels(text)
    assert set(there) <= set(proposed) and not set(missing) & set(proposed), proposed


def test_a_primitive_is_completed_by_its_example_as_a_snippet() -> None:
    text = SCRIPT.replace("STEP", "sched.sp")
    (split,) = [p for p in completions(of(text), at(text, "sched.sp", 8)) if p.label == "sched.split"]
    assert split.is_snippet
    assert split.text == 'sched.split ${1:%m} by [-1, 16] tail "pad" : !sched.loop, !sched.loop'
    assert "Split a loop into a nest" in proposal_documentation(split.about)
    assert "Lower" in proposal_documentation("pass te-to-loop") and proposal_documentation("op no.thing") == ""


def test_the_outline_is_a_tree() -> None:
    (function,) = symbols.outline(of(LOOP))
    (outer,) = function.children
    (inner,) = outer.children
    (block,) = inner.children
    assert [s.name for s in (function, outer, inner, block)] == ["@f", "i", "j", "D"]
    assert outer.detail == "serial loop of 8"
    folded = [shown(LOOP, part).split("\n")[0] for part, _ in symbols.folds(of(LOOP))]
    assert folded[0].startswith("func.func @f") and 'loop.for "i" %i = 8 {' in folded


def test_lenses() -> None:
    assert [lens.title for lens in lenses.lenses(of(TE))][:2] == ["after check-combiners", "after te-to-loop"]
    run = "// RUN: strata-opt %s -p te-to-loop,canonicalize | filecheck %s\n" + TE
    assert [(lens.title, lens.arguments[:2]) for lens in lenses.lenses(of(run))] == [
        ("after te-to-loop", (0, 1)),
        ("after canonicalize", (0, 2)),
    ]
    script = LOOP + SCRIPT.replace("STEP", "sched.parallel %i")
    (apply,) = lenses.lenses(of(script))
    assert apply.title == "apply script" and shown(script, apply.range) == "transform.named_sequence"
    assert [lens.command for lens in lenses.lenses(of(script), has_view=True)] == [lenses.VIEW, lenses.IR_AFTER]
    assert lenses.lenses(of(TE.replace("math.exp", "math.exq"))) == lenses.lenses(of(SCRIPT.replace("STEP", ""))) == []


def test_an_error_can_be_expected_by_a_quick_fix() -> None:
    text = "// RUN: strata-opt %s --verify-diagnostics\n" + TE.replace("%A[i]", "%A[i + 1]")
    snapshot = of(text)
    (fix,) = lenses.expectations(snapshot, snapshot.findings, snapshot.findings[0].range)
    fixed = text[: fix.offset] + fix.text + text[fix.offset :]
    assert {finding.severity for finding in of(fixed).findings} == {INFORMATION}
    assert lenses.expectations(of(TE), snapshot.findings, TextRange(0, 1000)) == []


def test_an_unchanged_piece_is_not_analysed_again() -> None:
    text = TE + "// -----\n" + TE.replace("@f", "@g")
    first = of(text)
    second = Snapshot.of(Path("t.mlir"), text.replace("@g", "@h"), former=first)
    assert second.sections[0].analysis is first.sections[0].analysis
    assert second.sections[1].analysis is not first.sections[1].analysis


def test_unregistered_ops_are_allowed_if_a_run_line_allows_them() -> None:
    text = '"other.op"() : () -> ()\n'
    assert len(analyse(text).findings) == 1
    assert of(f"// RUN: strata-opt %s --allow-unregistered-dialect\n{text}").findings == []
