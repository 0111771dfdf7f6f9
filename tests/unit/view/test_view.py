"""The page of `strata view`: its data are right, it is well-formed and stands alone, and a refusal has its witness."""

from __future__ import annotations

import copy
import json
import pickle
import re
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import compiler
from benchmarks.networks import bert
from compiler import te
from compiler.__main__ import main
from compiler.pipeline.source import parse
from compiler.schedule import Schedule
from compiler.support.errors import InputError, ScheduleError, TargetError
from compiler.targets.cpu import Kernel
from compiler.targets.registry import target_named
from compiler.types.machines import host
from compiler.view import page as page_module
from compiler.view.collect import default_path, page_of_kernel, page_of_loops, page_of_schedule, page_of_target
from compiler.view.equations import equations_of
from compiler.view.nests import memory
from compiler.view.page import MAX_BYTES, page
from compiler.view.parts import PageTarget, page_part, proof
from compiler.view.records import IrStage, PagePart, ProgramPage
from compiler.view.stages import MAX_COLUMNS, MAX_LINES, assembly_stage, compared, llvm_stage, stage
from compiler.view.steps import MAX_QUERIES, stepped
from compiler.view.subject import PageSubject, certificate_of, subjects_of
from tests import said
from tests.pages import Elements, parts_of
from tests.programs import matmul
from tests.whole import whole


@cache
def product() -> Kernel:
    return compiler.build(matmul(64, 64, 64, name="mm", output="C"), threads=1, schedule="auto")


@cache
def product_page() -> ProgramPage:
    return page_of_kernel(product())


def total_of_rows() -> te.Function:
    A, k = te.placeholder((64, 32), name="A"), te.reduce_axis(32, "k")
    return te.function("total", [A], te.compute((64,), lambda m: te.sum(A[m, k], axis=k), name="C"))


def total() -> Schedule:
    return Schedule(total_of_rows())


def script(s: Schedule, *steps: str) -> str:
    """A script for the loops m and k of `total`, whose last steps are `steps`."""
    head = ['%C = sched.get_block %f "C"', "%m, %k = sched.get_loops %C : !sched.loop, !sched.loop"]
    body = "\n".join([*head, *steps, "transform.yield"])
    return f"transform.named_sequence @schedule(%f: !transform.any_op {{transform.readonly}}) {{\n{body}\n}}"


# --- stages ------------------------------------------------------------------------------------------------------


def test_stages_of_a_product_in_the_order_of_the_passes() -> None:
    (part,) = product_page().parts
    names = [each.name for each in part.stages]
    assert names[0] == "te" and names[-2:] == ["llvm", "assembly"]
    passes = ("te-to-loop", "apply-schedule", "loop-to-low", "promote-buffers", "plan-buffers")
    order = [names.index(name) for name in passes]
    assert order == sorted(order)
    assert part.stages[names.index("te-to-loop")].text.count("loop.for") == 3
    assert "scf.for" in part.stages[names.index("loop-to-low")].text
    assert part.stages[names.index("plan-buffers")].seconds is not None


@pytest.mark.parametrize("number", range(1, 6))
def test_changed_lines_are_those_that_differ(number: int) -> None:
    stages = product_page().parts[0].stages
    before, after = (re.sub(r"%v?\d+\b", "%#", each.text).split("\n") for each in stages[number - 1 : number + 1])
    position = 0
    for a, b, c, d in (*stages[number].changed, (len(before), len(before), len(after), len(after))):
        assert before[position:a] == after[c - (a - position) : c]
        assert before[a:b] != after[c:d] or a == b == len(before)
        position = b


def test_renumbered_values_are_no_change() -> None:
    first, second = compared([IrStage("a", "%0 = f\n%1 = g %0"), IrStage("b", "%7 = f\n%9 = g %7\nend")])
    assert first.changed == () and second.changed == ((2, 2, 2, 3),)


def test_long_texts_are_cut_with_a_note() -> None:
    text = "\n".join(["x" * (MAX_COLUMNS + 5)] + ["y"] * (MAX_LINES + 1))
    lines = stage("s", text).text.split("\n")
    assert len(lines) == MAX_LINES + 1 and lines[-1] == "... 2 more lines" and len(lines[0]) == MAX_COLUMNS + 4


def test_arguments_of_llvm_have_the_names_of_the_program() -> None:
    text = "define void @f(ptr %a0, ptr %a1, ptr %workspace) {"
    assert llvm_stage(text, ["A", "B", "C"], {}).aliases == {"a0": "A", "a1": "B"}
    last = product_page().parts[0].stages[-2]
    assert last.aliases == {"a0": "A", "a1": "B", "a2": "C"}


def test_debug_locations_of_assembly_become_loops() -> None:
    text = (
        "f:\n\t.loc\t1 2 0\n\taddq %rax\n\t.loc\t1 2 3\n\tnop\n\t.loc\t1 0 0\n\tret\n\t.section\t.debug_line\n\t.long 1"
    )
    expected = ["f:", '    # loop "k.1"', "    addq %rax", "    nop", "    # outside of loops", "    ret"]
    commented = assembly_stage(text, {2: ("k.1", "model.py:3")}, 0.1)
    assert commented.text.split("\n") == expected
    assert commented.places == ["model.py:3"] and commented.runs == [(0, -1), (1, 0), (4, -1)]
    if host().architecture == "x86_64":
        assert '# loop "k.1"' in product_page().parts[0].stages[-1].text


def test_debug_locations_of_llvm_become_loops() -> None:
    lines = [
        "define void @f() !dbg !9 {",
        "  %x = add i64 1, 2, !dbg !7",
        "  ret void, !dbg !8",
        "}",
        "!llvm.dbg.cu = !{}",
    ]
    text = "\n".join([*lines, "!7 = !DILocation(line: 4, scope: !9)", "!8 = !DILocation(line: 0, scope: !9)"])
    commented = llvm_stage(text, [], {4: ("k", "")})
    expected = [
        "define void @f() {",
        '    ; loop "k"',
        "  %x = add i64 1, 2",
        "    ; outside of loops",
        "  ret void",
        "}",
    ]
    assert commented.text.split("\n") == expected and commented.places == []
    assert "dbg" not in product_page().parts[0].stages[-2].text
    assert '; loop "k.1"' in product_page().parts[0].stages[-2].text


def test_lines_have_their_place_in_the_source() -> None:
    A = te.placeholder((64, 48), name="A")
    f = te.function("f", [A], te.nn.softmax(A, name="B"))  # this line
    shown = page_of_kernel(compiler.build(f, threads=1, schedule="auto"), program=f)
    (part,) = shown.parts
    number = next(n for n, line in enumerate(Path(__file__).read_text().split("\n"), 1) if line.endswith("# this line"))
    for each in part.stages:
        assert any(place.endswith(f"test_view.py:{number}") for place in each.places), each.name
        assert each.runs[0][0] == 0 and all(a[0] < b[0] for a, b in pairwise(each.runs))
    assert part.stages[0].runs == [(0, -1), (1, 0)]  # the function itself is of that line
    assert all(code["origin"].endswith(f"test_view.py:{number}") for code in part.code)
    assert f"test_view.py:{number}" in part.facts[1]


# --- steps and refusals ------------------------------------------------------------------------------------------


def test_steps_have_loops_and_queries() -> None:
    s = total()
    nests, steps = stepped(
        s, script(s, "%o, %i = sched.split %m by [-1, 16] : !sched.loop, !sched.loop", "sched.parallel %o")
    )
    assert [step.nest for step in steps] == [0, 0, 1, 2] and len(nests) == 3
    assert [nests[2][0]["kind"], nests[2][0]["extent"], nests[2][0]["body"][0]["extent"]] == ["parallel", 4, 16]
    assert all(step.refusal is None and step.seconds > 0 for step in steps)
    assert nests[0][0]["body"][0]["body"][0] | {"origin": ""} == {"block": "C", "text": "C += f(A)", "origin": ""}


def test_a_race_has_two_iterations_as_its_witness() -> None:
    s = total()
    _, steps = stepped(s, script(s, "sched.vectorize %m", "sched.parallel %k", "sched.unroll %k"))
    assert len(steps) == 4  # the last step is not reached
    refusal = steps[-1].refusal
    assert refusal is not None and refusal.loop == "k" and refusal.element == "C[0]"
    first, second = refusal.instances
    assert (first.axes, second.axes) == ({"m": 0, "k": 0}, {"m": 0, "k": 1}) and first.use == second.use == "updates"
    assert "depend on each other" in refusal.sentence
    (query,) = steps[-1].queries
    assert query.kind == "sample" and query.answer is not None and not steps[-1].omitted


def test_a_reversed_order_has_its_instances_too() -> None:
    A = te.placeholder((8,), name="A")
    B = te.nn.exp(A, name="B")
    C = te.compute((8,), lambda i: B[7 - i], name="C")
    s = Schedule(te.function("f", [A], C))
    text = script(s).split("%C =")[0] + (
        '%B = sched.get_block %f "B"\n%C = sched.get_block %f "C"\n%i = sched.get_loops %B : !sched.loop\n'
        "%j = sched.get_loops %C : !sched.loop\n%l = sched.merge %i, %j\ntransform.yield\n}"
    )
    refusal = stepped(s, text)[1][-1].refusal
    assert refusal is not None and not refusal.loop
    assert [instance.use for instance in refusal.instances] == ["writes", "reads"]
    assert refusal.element.startswith("B[") and refusal.instances[1].name.startswith("C[")


def test_a_refusal_without_a_witness_is_a_sentence() -> None:
    s = total()
    refusal = stepped(s, script(s, "%o, %i = sched.split %m by [3, 4] : !sched.loop, !sched.loop"))[1][-1].refusal
    assert refusal is not None and refusal.instances == () and "do not cover its extent 64" in refusal.sentence


def test_what_is_no_script_is_refused_as_a_whole() -> None:
    with pytest.raises(ScheduleError, match="a script is one"):
        stepped(total(), "builtin.module {}")


def test_many_queries_are_counted() -> None:
    s = total()
    first = stepped(s, script(s, "sched.parallel %m"))[1][-1]
    from compiler.view.steps import listed

    shown, omitted = listed(list(first.queries) * 100 or [])
    assert len(shown) + omitted == 100 * len(first.queries) and len(shown) <= MAX_QUERIES


def test_a_refused_script_has_a_page_without_machine_code() -> None:
    shown = page_of_schedule(total().original, script(total(), "sched.parallel %k"))
    (part,) = shown.parts
    assert shown.refusal is part.refusal is not None
    assert part.memory and not part.code and part.proof is None
    assert "step 3 of the script is refused" in part.notes["code"]
    assert part.stages[-1].name == "apply-schedule, up to the refused step"
    text = "".join(page(shown))
    (content,) = parts_of(text)
    assert content["steps"][-1]["refusal"]["instances"][1]["axes"] == {"m": 0, "k": 1}
    assert "Refused: parallel: iterations of loop" in text  # also without JavaScript


# --- loops, memory, equations, proof -----------------------------------------------------------------------------


def test_memory_of_a_loop_by_hand() -> None:
    s = total()
    m, k = s.get_loops("C")
    of_m = {b["name"]: b for b in memory(s.program)[s.meaning(m)]["buffers"]}
    assert of_m["A"]["first"] == [(0, 0), (0, 31)] and of_m["A"]["second"] == [(1, 1), (0, 31)]
    assert of_m["A"]["run"] == [(0, 63), (0, 31)] and of_m["A"]["accesses"] == 64 * 32
    assert of_m["C"]["accesses"] == 2 * 64 * 32  # an update reads and writes
    of_k = {b["name"]: b for b in memory(s.program)[s.meaning(k)]["buffers"]}
    assert of_k["C"]["first"] == of_k["C"]["second"] == of_k["C"]["run"] == [(0, 0)] and of_k["A"]["accesses"] == 32


def test_equations() -> None:
    A, T = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="T")
    B = te.compute((4, 8), lambda i, j: (A[i, j] + T[j]) * 2.0 - te.exp(A[i, j]), name="B")
    (block,) = Schedule(te.function("f", [A, T], B)).program.blocks.values()
    assert equations_of(block) == ["B[i, j] = ((A[i, j] + T[j]) * 2) - exp(A[i, j])"]
    (block,) = total().program.blocks.values()
    assert equations_of(block) == ["C[m] = add over k of A[m, k]"]


def test_claims_of_a_proof_and_of_a_refutation() -> None:
    s = total()
    original = s.program
    s.split("C.m", [None, 16])
    proved = proof(s.program, original)
    assert proved.answer == "proved" and all(claim.answered for claim in proved.claims)
    texts = [claim.text for claim in proved.claims]
    assert (
        "'C' computes the equation of its origin" in texts and "every element of 'C' has its value at the end" in texts
    )
    text = str(s.module).replace('"k" %k = 32', '"k" %k = 31')
    wrong = proof(Schedule(parse(text)).program, original)
    assert wrong.answer == "refuted" and [claim.answered for claim in wrong.claims].count(False) == 1
    assert wrong.claims[-1].answered is False


def test_machine_loops_have_their_bound() -> None:
    if host().architecture != "x86_64":
        pytest.skip("the loops of a product on x86-64")
    codes = product_page().parts[0].code
    best = max(codes, key=lambda code: code["percent"] or 0)
    assert best["limit"] in best["pressure"] and best["cycles"] >= max(best["pressure"].values()) - 1e-6
    assert "k.1" in best["path"] and "C" in best["blocks"] and "fma" in best["text"]
    assert any("fma" in line for line in best["details"])


# --- programs ----------------------------------------------------------------------------------------------------


def test_the_loops_of_the_page_are_those_that_were_compiled() -> None:
    """A script on the canonical loops of each group gives the loops of the certificate."""
    for kernel in (product(), net()):
        groups = certificate_of(kernel.text("certificate"))["groups"]
        for group in (group for group in groups if group["script"] and group["name"] != "mm"):
            s = Schedule(compiler.lower(parse(group["te"])))
            s.apply(group["script"])
            loops = str(s.module).replace("@unit", f"@{group['name']}").replace(", te.group}", "}")
            assert loops == group["loops"]
    (part,) = product_page().parts
    compiled = parse(certificate_of(product().text("certificate"))["groups"][0]["loops"])
    shown = next(each.text for each in part.stages if each.name == "apply-schedule")
    strip = re.compile(r"%[\w.$-]+|\"[^\"]*\"")
    assert strip.sub("%", shown) == strip.sub("%", str(compiled))


@cache
def net() -> Kernel:
    return compiler.build(whole(), threads=1, schedule="auto")


def test_a_network_has_its_program_and_its_groups() -> None:
    shown = page_of_kernel(net())
    assert [part.name for part in shown.parts] == ["@net", *(group.name for group in net().groups)]
    main, *groups = shown.parts
    assert [each.name for each in main.stages] == ["te", "calls"] or [each.name for each in main.stages][-1] == "calls"
    assert not main.steps and "choose one" in main.notes["code"]
    assert all(part.stages and part.memory for part in groups)
    (alone,) = page_of_kernel(net(), "group_1").parts
    assert alone.name == "group_1"


def test_groups_have_the_names_of_the_user() -> None:
    kernel = compiler.build(bert(1, tokens=8, width=16, heads=2, hidden=32), threads=1, schedule="auto")
    assert len(kernel.groups) > 1
    subjects = list(subjects_of(certificate_of(kernel.text("certificate")), kernel.groups))
    named = " ".join(str(subject.te) for subject in subjects)
    assert '"attention.scores"' in named and "%W1" in named and "product0" not in named
    for subject in subjects:
        assert subject.unscheduled is not None and subject.script is not None
        assert not any("product0" in label for label in subject.unscheduled.blocks)
        assert "product0" not in str(subject.script)


def test_a_script_that_does_not_apply_under_the_users_names_has_canonical_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compiler.view.subject.script_with_user_names", lambda script, names: script)
    (part,) = page_of_kernel(product()).parts
    assert part.refusal is None and part.proof is not None and part.proof.answer == "proved"
    assert "product0" in part.stages[-3].text


def test_loops_and_low_level_have_pages() -> None:
    s = total()
    s.parallel("C.m")
    (part,) = page_of_kernel(compiler.build(s, threads=1)).parts
    assert part.notes["script"] and part.nests[-1][0]["kind"] == "parallel" and part.stages[0].name == "loop"
    low = compiler.build(s, threads=1).text("low")
    (part,) = page_of_kernel(compiler.build(low, threads=1)).parts
    assert part.stages[0].name == "low" and part.nests[-1] and not part.memory


def test_a_schedule_has_its_script() -> None:
    s = total()
    s.parallel("C.m")
    (part,) = page_of_kernel(compiler.build(s, threads=1), program=s).parts
    assert [step.text.split()[0] for step in part.steps[-1:]] == ["sched.parallel"] and part.proof is not None
    assert part.nests[-1][0]["kind"] == "parallel" and part.code


def test_loops_edited_by_hand_are_compared_with_their_original(
    tmp_path: Path, strata: said.Strata, capsys: pytest.CaptureFixture[str]
) -> None:
    s = total()
    s.parallel("C.m")
    shown = page_of_loops(s.module, total_of_rows())
    assert shown.fault is None and shown.parts[0].proof is not None and "proof" not in shown.parts[0].notes
    wrong = str(s.module).replace('"k" %k = 32', '"k" %k = 31')
    shown = page_of_loops(wrong, total_of_rows())
    assert shown.fault is not None and shown.fault.startswith("Refuted: contributions to 'C' are missing")
    assert "Refuted: contributions" in "".join(page(shown))
    files = {"wrong.mlir": wrong, "right.mlir": str(s.module), "total.mlir": str(total_of_rows().module)}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    path, original = str(tmp_path / "page.html"), str(tmp_path / "total.mlir")
    assert strata("view", str(tmp_path / "right.mlir"), "--original", original, "-o", path) == f"{path}\n"
    assert main(["view", str(tmp_path / "wrong.mlir"), "--original", original, "-o", path]) == 1
    out, err = capsys.readouterr()
    assert out == f"{path}\n" and "Refuted: contributions to 'C' are missing" in said.refusal(err)
    assert parts_of(Path(path).read_text())[0]["proof"]["answer"] == "refuted"
    assert "at the te level" in strata("view", original, "--original", original, "-o", path, status=1)


def test_an_error_of_the_compiler_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise TargetError("no code today")

    monkeypatch.setattr("compiler.view.parts.marked_builds", fail)
    part = page_part(PageSubject("total", module=total().module))
    assert part.notes["code"] == "There is no machine code: no code today" and part.nests


# --- the page ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shown", ["product", "refused", "net"])
def test_the_page_is_well_formed_and_loads_nothing(shown: str) -> None:
    pages = {
        "product": product_page,
        "refused": lambda: page_of_schedule(total().original, script(total(), "sched.parallel %k")),
        "net": lambda: page_of_kernel(net()),
    }
    text = "".join(page(pages[shown]()))
    elements = Elements()
    elements.feed(text)
    assert elements.open == [] and elements.loads == []
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|@import|url\(", text)


def test_names_of_a_program_are_escaped() -> None:
    name = "</script><script>alert(1)</script>"
    A = te.placeholder((4,), name="A")
    module = te.function("f", [A], te.nn.exp(A, name="B")).module
    part = page_part(PageSubject(name, module, facts=[name]))
    text = "".join(page(ProgramPage(name, [name], {}, [part])))
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    assert parts_of(text)[0]["name"] == name
    index = json.loads(re.findall(r'id="index">(.*?)</script>', text)[0])
    assert index["parts"][0]["name"] == name


def test_the_size_of_a_page_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(page(page_of_kernel(net())))
    assert len(text) < 300_000 < MAX_BYTES
    monkeypatch.setattr(page_module, "MAX_BYTES", 50_000)
    small = "".join(page(page_of_kernel(net())))
    fits = [row["fits"] for row in json.loads(re.findall(r'id="index">(.*?)</script>', small)[0])["parts"]]
    assert fits[0] and not fits[-1] and len(parts_of(small)) == sum(fits) and len(small) < 60_000


def test_kernels_have_a_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert product().view() == Path("mm.html") and parts_of((tmp_path / "mm.html").read_text())
    assert product().view(tmp_path / "other.html").read_text().startswith("<!DOCTYPE html>")
    with pytest.raises(TargetError, match="its texts were not kept"):
        pickle.loads(pickle.dumps(product())).view()


@pytest.mark.parametrize(
    ("name", "path"),
    [("a/b c", "a_b_c.html"), ("..", "view.html"), ("\x00", "_.html"), ("x" * 999, "x" * 100 + ".html")],
)
def test_default_paths_stay_in_the_folder(name: str, path: str) -> None:
    assert default_path(name) == Path(path)


def test_parts_are_plain_data() -> None:
    part = copy.deepcopy(product_page().parts[0])
    assert isinstance(part, PagePart)
    content: Any = parts_of("".join(page(product_page())))[0]
    assert content["steps"][0]["text"] == part.steps[0].text and set(content["memory"]) == {str(n) for n in part.memory}


# --- other targets -----------------------------------------------------------------------------------------------


def test_a_page_for_a_gpu_has_its_launches() -> None:
    target = target_named("cuda")
    shown = page_of_target(total_of_rows(), PageTarget(target=target, arch="sm_90"))
    (part,) = shown.parts
    assert [each.name for each in part.stages][-3:] == ["loop-to-gpu", "extend-floats", "cuda"]
    assert "__global__" in part.stages[-1].text and part.proof is not None and part.proof.answer == "proved"
    (launch,) = part.code
    assert launch["limit"] in launch["pressure"] and launch["seconds"] > 0 and shown.caches["shared"] == 227 << 10
    elements = Elements()
    elements.feed("".join(page(shown)))
    assert elements.open == []


def test_the_groups_of_a_network_for_a_gpu() -> None:
    way = PageTarget(target=target_named("cuda"), arch="sm_80")
    shown = page_of_target(whole(), way)
    assert len(shown.parts) == 4 and all(part.code for part in shown.parts)
    assert [part.name for part in page_of_target(whole(), way, group="group_1").parts] == ["group_1"]
    with pytest.raises(InputError, match="no group 'group_7'"):
        page_of_target(whole(), way, group="group_7")


def test_loops_for_a_gpu_stay_as_they_are() -> None:
    s = total()
    s.bind("C.m", "thread_x")
    (part,) = page_of_target(s.module, PageTarget(target=target_named("cuda"), arch="sm_80")).parts
    assert part.nests[-1][0]["kind"] == "thread_x" and not part.steps and part.code


def test_a_page_for_c_has_its_text() -> None:
    (part,) = page_of_target(total_of_rows(), PageTarget(target=target_named("c"))).parts
    assert part.stages[-1].name == "c" and "for (" in part.stages[-1].text and "compiler's" in part.notes["code"]


def test_a_refused_script_for_a_gpu() -> None:
    way = PageTarget(target=target_named("cuda"), arch="sm_80")
    shown = page_of_schedule(total().original, script(total(), 'sched.bind %k to "thread_x"'), None, way)
    assert shown.refusal is not None and shown.refusal.loop == "k"
