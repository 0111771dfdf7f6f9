"""Certificates of whole programs: division into groups, calls and interface are proved; faults are named."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from compiler.certificate.text import Certificate, parse, version
from compiler.driver.building import compile_program
from compiler.driver.recipe import text_of
from compiler.fuzz.programs import arrays_for, branches, program
from compiler.pipeline.certified import verdict_of
from compiler.pipeline.certified.check import whole_findings
from compiler.pipeline.certified.division import division_verdict
from compiler.pipeline.certified.interface import parsed_interface
from compiler.pipeline.certified.memory import Memory, MemoryRange, Piece, joined, value_of, whole
from compiler.support.errors import InputError
from compiler.targets.cpu.library.description import describe
from compiler.targets.cpu.library.export import with_calls
from compiler.types.machines import MACHINES
from compiler.types.selection import compiling_for
from strata import te
from tests.sample import some

N = 16


def certified(f: te.Function, constants: dict[str, Any] | None = None, **options: Any) -> Certificate:
    """The certificate of a library of a program, for this machine, without the library."""
    compiled = compile_program(f, threads=1, constants=constants, schedule="auto", **options)
    stated = Certificate("net", [version(text_of(compiled.texts.main["certificate"]))], error=options.get("error"))
    return parse(with_calls(stated, describe("net", [compiled.linked])).text(), "it")


def verdicts(stated: Certificate) -> list[str]:
    """What does not hold of a program as a whole."""
    (only,), interface = stated.versions, parsed_interface(stated.interface)
    return [str(finding) for finding in whole_findings(only, interface, stated.error) if not finding.holds]


def layers() -> te.Function:
    """Groups on squares, so that any of their arrays may stand for another one; one is of the weights alone."""
    x, y, v, w = (te.placeholder((N, N), name=name) for name in "xyvw")
    scaled = te.nn.matmul(v, w, name="vw")
    hidden = te.nn.softmax(te.nn.relu(te.nn.add(te.nn.matmul(x, scaled, name="h"), y), name="r"), name="s")
    out = te.nn.softmax(te.nn.sub(te.nn.matmul(hidden, w, name="p"), y, name="d"), name="o")
    return te.function("layers", [x, y, v, w], [hidden, out])


@pytest.fixture(scope="module")
def stated() -> Certificate:
    """A certificate for haswell with weights that are prepared, of a program of four groups."""
    weights = {name: np.random.default_rng(0).random((N, N), np.float32) for name in "vw"}
    with compiling_for(MACHINES["haswell"]):
        result = certified(layers(), weights)
    assert verdicts(result) == []
    assert len(result.versions[0].groups) == 4 and len(result.versions[0].calls) > 1
    return result


def of_version(stated: Certificate, **fields: Any) -> Certificate:
    return replace(stated, versions=[replace(stated.versions[0], **fields)])


def of_group(stated: Certificate, number: int, **fields: Any) -> Certificate:
    groups = list(stated.versions[0].groups)
    groups[number] = replace(groups[number], **fields)
    return of_version(stated, groups=groups)


def exchanged(text: str, first: str, second: str) -> str:
    """A text with two words exchanged."""
    assert first in text and second in text
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


def calls_of(main: str) -> list[str]:
    """The lines of the calls of a main function."""
    return [line for line in main.splitlines() if "func.call" in line]


def operands_exchanged(line: str) -> str:
    """A call whose first two operands of one type are exchanged."""
    first, second = re.findall(r"%[\w.]+", line)[:2]
    return re.sub(r"\((.*?)\)", lambda found: f"({exchanged(found[1], first, second)})", line, count=1)


def groups_swapped(stated: Certificate) -> Certificate:
    """The symbols of two groups of equal arguments, each called in the place of the other."""
    groups = list(stated.versions[0].groups)
    first, second = (n for n, group in enumerate(groups) if "product0" in group.te and "%a2" in group.te)
    a, b = groups[first], groups[second]
    groups[first], groups[second] = replace(a, symbol=b.symbol), replace(b, symbol=a.symbol)
    return of_version(stated, groups=groups)


def lines_swapped(stated: Certificate) -> Certificate:
    main = stated.versions[0].main
    first, second = calls_of(main)[:2]
    return of_version(stated, main=exchanged(main, first, second))


def operands_swapped(stated: Certificate) -> Certificate:
    main = stated.versions[0].main
    line = next(line for line in calls_of(main) if operands_exchanged(line) != line)
    return of_version(stated, main=main.replace(line, operands_exchanged(line)))


def te_changed(stated: Certificate) -> Certificate:
    """A group with another operation, in all texts, so that its loops still compute it."""
    only = stated.versions[0]
    number = next(n for n, group in enumerate(only.groups) if "arith.maximumf" in group.te)
    only = replace(only, program=only.program.replace("arith.maximumf", "arith.minimumf"))
    texts = {name: getattr(only.groups[number], name) for name in ("te", "loops")}
    changed = {name: text.replace("arith.maximumf", "arith.minimumf") for name, text in texts.items()}
    assert verdict_of(replace(only.groups[number], **changed))
    return of_group(replace(stated, versions=[only]), number, **changed)


def pointers_swapped(stated: Certificate) -> Certificate:
    *before, last = stated.versions[0].calls
    pointers = [*reversed(last.pointers[:2]), *last.pointers[2:]]
    return of_version(stated, calls=[*before, replace(last, pointers=pointers)])


def without_preparation(stated: Certificate) -> Certificate:
    return of_version(stated, calls=stated.versions[0].calls[1:])


def another_weight(stated: Certificate) -> Certificate:
    """A preparation reads another weight."""
    first, *later = stated.versions[0].calls
    pointers = [["weight", 1] if kind == "weight" else [kind, number] for kind, number in first.pointers]
    assert pointers != first.pointers
    return of_version(stated, calls=[replace(first, pointers=pointers), *later])


def names_swapped(stated: Certificate) -> Certificate:
    return replace(stated, interface=exchanged(stated.interface, '"name": "x"', '"name": "y"'))


def shape_changed(stated: Certificate) -> Certificate:
    return replace(stated, interface=stated.interface.replace(f"[{N}, {N}]", f"[{N * N}]", 1))


def slots_overlap(stated: Certificate) -> Certificate:
    """All temporaries at the beginning of their memory."""
    main = re.sub(r"(%\d+ = arith.constant) (?!0 )\d+ : index", r"\1 0 : index", stated.versions[0].main)
    assert main != stated.versions[0].main
    return of_version(stated, main=main)


def law_that_does_not_apply(stated: Certificate) -> Certificate:
    return of_version(stated, laws={"chain": ""})


def unknown_law(stated: Certificate) -> Certificate:
    return of_version(stated, laws={"zeros": ""})


FAULTS: dict[Callable[[Certificate], Certificate], tuple[str, ...]] = {
    groups_swapped: ("calls: undecided: ",),
    lines_swapped: ("calls: undecided: the result",),
    operands_swapped: ("calls: undecided: the result", "reads or computes other values"),
    te_changed: ("division into groups: undecided: the program as given has no group like group_",),
    pointers_swapped: ("calls: undecided: the result", "interface: refuted: the call of the native function is not"),
    without_preparation: ("calls: undecided: the result",),
    another_weight: ("calls: undecided: the result",),
    names_swapped: ("interface: refuted: input 0 is 'x: float32[16, 16]' in the program, 'y: float32[16, 16]' in",),
    shape_changed: ("interface: refuted: input 0 is 'x: float32[16, 16]' in the program, 'x: float32[256]' in",),
    slots_overlap: ("calls: undecided: ",),
    law_that_does_not_apply: ("division into groups: undecided: the law 'chain' does not apply to the program",),
    unknown_law: ("division into groups: undecided: the law 'zeros' is not one of this release",),
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_fault_is_named(fault: Callable[[Certificate], Certificate], stated: Certificate) -> None:
    lines = "\n".join(verdicts(fault(stated)))
    assert all(words in lines for words in FAULTS[fault]), lines


@pytest.fixture(scope="module")
def convolutions() -> Certificate:
    """A certificate of a program with forms by laws of groups and of whole programs."""
    x, w = te.placeholder((1, 64, 28, 28), name="X"), te.placeholder((64, 64, 3, 3), name="W")
    hidden = te.nn.relu(te.nn.conv2d(x, w, padding=1, name="Y"), name="H")
    f = te.function("f", [x, w], te.nn.relu(te.nn.conv2d(hidden, w, padding=1, name="Z"), name="O"))
    with compiling_for(MACHINES["haswell"]):
        result = certified(f, {"W": np.random.default_rng(0).random((64, 64, 3, 3), np.float32)}, error=1e-3)
    assert any(group.law == "winograd-4x4" for group in result.versions[0].groups) and verdicts(result) == []
    return result


def form_changed(stated: Certificate) -> Certificate:
    """Another operation in the form of a law, so that the law does not give it."""
    only = stated.versions[0]
    head, name, rest = only.program.partition("func.func private @group_0_winograd")
    assert "arith.subf" in rest
    return of_version(stated, program=head + name + rest.replace("arith.subf", "arith.addf", 1))


def law_left_out(stated: Certificate) -> Certificate:
    return of_version(stated, laws={})


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (form_changed, "does not give 'group_0_winograd_4x4' of 'group_0'"),
        (law_left_out, "names laws of groups: none; the groups have forms by winograd-4x4"),
    ],
)
def test_forms_by_laws(fault: Callable[[Certificate], Certificate], words: str, convolutions: Certificate) -> None:
    stated = fault(convolutions)
    assert words in str(division_verdict(stated.versions[0], ["W"], stated.error))


@pytest.mark.parametrize("seed", some(range(12), 4))
def test_random_programs(seed: int) -> None:
    """Also with concatenations in slices, results in the memory of inputs, and constants."""
    rng = random.Random(seed)
    f = branches(rng, 10) if seed % 2 else program(rng, 8, constants=0.3 * (seed % 3), views=seed % 5 == 0)
    arrays = zip((tensor.name for tensor in f.inputs), arrays_for(f, seed), strict=False)
    constants = {name: array for name, array in arrays if rng.random() < 0.4}
    assert verdicts(certified(f, constants)) == []


@pytest.mark.parametrize("size", [20, 60])
def test_constants_of_one_function(size: int) -> None:
    """Constants that are arguments of the loops, and small ones that are part of them."""
    x = te.placeholder((4, size), name="x")
    w = te.constant(np.random.default_rng(0).random((size, size), np.float32), name="W")
    result = certified(te.function("f", [x], te.nn.matmul(x, w, name="y")))
    (group,) = result.versions[0].groups
    assert verdict_of(group) and verdicts(result) == []
    other = replace(group, te=group.te.replace("%x[m, k]", "%x[m, 0]"))
    assert other != group and not verdict_of(other)


def test_damaged_certificates(stated: Certificate) -> None:
    """Parts that do not fit together end in a sentence."""
    only = stated.versions[0]
    for wrong, words in (
        (replace(stated, interface="{}"), "the interface of the certificate is damaged"),
        (of_version(stated, machine="{}"), "does not describe the machine haswell"),
        (of_version(stated, program="x"), "the groups of the certificate is no program"),
        (of_version(stated, main="builtin.module {}"), "function"),
    ):
        with pytest.raises(InputError, match=words):
            verdicts(wrong)
    for text in ("[[0]]", '[["a", "b"]]', "3"):
        damaged = stated.text().replace(f'"copies": {json.dumps(only.copies)}', f'"copies": {text}')
        with pytest.raises(InputError, match="is no certificate"):
            parse(re.sub(r'"copies": \[[^a-z]*\]', f'"copies": {text}', damaged, count=1), "it")
    call = replace(only.calls[-1], pointers=[])
    assert "calls: undecided" in "\n".join(verdicts(of_version(stated, calls=[call])))
    assert "no weight 9" in "\n".join(verdicts(of_version(stated, copies=[[9, 0]])))
    assert "has no group for the function" in "\n".join(verdicts(of_group(stated, 0, symbol="other")))


def test_memory() -> None:
    memory, a, b = Memory(), value_of(8, "a"), value_of(4, "b")
    memory.write(MemoryRange("m", 4, 8), whole(a))
    assert memory.read(MemoryRange("m", 4, 8)) == whole(a)
    assert memory.read(MemoryRange("m", 0, 8)) == (Piece(None, 0, 4), Piece(a, 0, 4))
    memory.write(MemoryRange("m", 6, 4), whole(b))
    assert memory.read(MemoryRange("m", 4, 8)) == (Piece(a, 0, 2), Piece(b, 0, 4), Piece(a, 6, 8))
    memory.write(MemoryRange("m", 6, 4), (Piece(a, 2, 6),))
    assert memory.read(MemoryRange("m", 4, 8)) == whole(a)
    assert memory.read(MemoryRange("other", 0, 4)) == (Piece(None, 0, 4),) and joined([Piece(a, 3, 3)]) == ()
    assert MemoryRange("m", 0, 4).overlaps(MemoryRange("m", 3, 4)) and not MemoryRange("m", 0, 4).overlaps(
        MemoryRange("m", 4, 4)
    )
    assert not MemoryRange("m", 0, 4).overlaps(MemoryRange("n", 0, 4))
