"""One sample, compiled, beside eager."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.frontends.torch.report import Report
from compiler.frontends.torch.tracing import decompositions
from compiler.torch_backend import strata
from tests.operator_samples import special
from tests.operator_samples.classes import AMONG_EQUALS, BY_CHOICE, MOVES, SPECIAL, class_of, reason_of
from tests.operator_samples.samples import BY_NAME, WIDER, Sample, Unit, drawn, tolerance

COMPILED, LEFT, WRONG, CRASHED, REFUSED = "compiled", "left to torch", "wrong", "crashed", "refused by torch"
OTHER = "other by choice"
ROUNDING = 4
"""Where eager itself is beyond the tolerance of its dtype, the factor within which our errors are rounding, too."""
DECOMPOSED = "as torch's own decomposition has it"
CAPTURED = "as torch.compile rewrites it: its backend eager gives the same"
OVERFLOWN = "sums of the greatest numbers overflow in another order"
OPERATOR = re.compile(r"aten\.\w+(?:\.\w+)?")


@dataclass
class Outcome:
    """What became of a sample: all of it `compiled`, or why not, and in which class it is left out of the share."""

    unit: Unit
    number: int
    variant: str
    kind: str
    reasons: list[str] = field(default_factory=list)
    left_out: str | None = None
    through: str = "backend"


def outcomes(unit: Unit, after: int = -1) -> Iterator[tuple[int, str, Callable[[], list[Outcome]]]]:
    """The samples of a unit behind a number, each with what runs it. The first goes through torch.compile."""
    for n, (number, sample) in enumerate(drawn(unit)):
        if number <= after:
            continue
        run = _Run(unit, number, sample, unit.dynamo or (n == 0 and not unit.dry))
        if not unit.special:
            yield number, "", run.plain
            continue
        yield number, "values", run.of_values
        kinds = list(special.LAYOUTS)
        yield number, "layouts", lambda run=run, number=number, kinds=kinds: run.of_layout(kinds[number % len(kinds)])


class _Run:
    def __init__(self, unit: Unit, number: int, sample: Sample, dynamo: bool) -> None:
        self.unit, self.number, self.sample, self.dynamo = unit, number, sample, dynamo

    def plain(self) -> list[Outcome]:
        """The sample as torch has it."""
        return [self._outcome("", self.sample.tensors, self._compiled(self.sample.tensors))]

    def of_values(self) -> list[Outcome]:
        """One kernel, several values."""
        compiled, dtype = self._compiled(self.sample.tensors), BY_NAME[self.unit.dtype]
        given = {kind: special.of_values(self.sample.tensors, dtype, kind, self.number) for kind in special.VALUES}
        return [self._outcome(kind, tensors, compiled) for kind, tensors in given.items()]

    def of_layout(self, kind: str) -> list[Outcome]:
        """The sample with its tensors in another layout."""
        tensors = special.of_layout(self.sample.tensors, kind)
        return [self._outcome(kind, tensors, self._compiled(tensors))]

    def _compiled(self, tensors: Sequence[Any]) -> tuple[Callable[[], Callable[..., Any]], Report]:
        """What compiles the sample, once, and the report that it writes."""
        report = Report()
        if self.dynamo:
            return cache(lambda: _through_dynamo(self.sample.function, report)), report
        return cache(lambda: _through_backend(self.sample.function, tensors, report)), report

    def _outcome(
        self, variant: str, tensors: Sequence[Any], compiled: tuple[Callable[[], Callable[..., Any]], Report]
    ) -> Outcome:
        compile, report = compiled

        def outcome(kind: str, reasons: Sequence[str], of: Sequence[str] = ()) -> Outcome:
            names = [name for reason in (*reasons, *of) for name in OPERATOR.findall(reason)]
            names += ["dropout" for reason in (*reasons, *of) if "dropout_p is" in reason]
            through = "torch.compile" if self.dynamo else "backend"
            return Outcome(self.unit, self.number, variant, kind, list(reasons), class_of(names), through)

        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = self.sample.function(*map(_copied, tensors))
            except Exception as error:
                return outcome(REFUSED, [f"eager: {_line(error)}"])
            try:
                run = compile()
                if self.unit.dry:
                    return self._judged(report, outcome)
                actual = run(*map(_copied, tensors))
            except Exception as error:
                said = f"{type(error).__name__}: {_line(error)}"
                return (
                    outcome(LEFT, [f"torch captures nothing: {said}"]) if _of_torch(error) else outcome(CRASHED, [said])
                )
            judged = self._judged(report, outcome)
            if judged.left_out != "random numbers" and self.unit.operator not in BY_CHOICE:
                difference = self._difference(tensors, actual, wanted)
                if difference:
                    reason = self._choice(tensors, actual, wanted, variant)
                    kind, said = (WRONG, difference) if reason is None else (OTHER, reason)
                    return outcome(kind, [said], judged.reasons)
        return judged

    def _judged(self, report: Report, outcome: Callable[..., Outcome]) -> Outcome:
        reasons = list(report.unsupported) + [f"graph break: {reason}" for reason in report.breaks]
        judged: Outcome = outcome(LEFT if reasons or not _computed(report) else COMPILED, reasons)
        moved = all("only moves elements" in reason for reason in reasons)
        if judged.kind == LEFT and judged.left_out is None and moved and not _computed(report):
            judged.left_out = MOVES
        return judged

    def _difference(self, tensors: Sequence[Any], actual: Sequence[Any], wanted: Sequence[Any]) -> str | None:
        """How results differ from eager ones, and from eager ones of a wider dtype; None if they do not."""
        if len(actual) != len(wanted):
            return f"{len(actual)} results, expected {len(wanted)}"
        said = _differing(self.unit.operator, actual, wanted)
        if said is None or not any(e.dtype in WIDER for e in wanted):
            return said
        try:
            wide = [t.to(WIDER[t.dtype]) if t.dtype in WIDER else t for t in map(_copied, tensors)]
            exact = [e.to(w.dtype) for e, w in zip(self.sample.widened(*wide), wanted, strict=True)]
        except Exception:
            return said
        if _differing(self.unit.operator, actual, exact) is None:
            return None
        is_rounding = _differing(self.unit.operator, wanted, exact) and _rounds_alike(actual, wanted, exact)
        return None if is_rounding else said

    def _choice(self, tensors: Sequence[Any], actual: Sequence[Any], wanted: Sequence[Any], variant: str) -> str | None:
        """Why results may differ from eager ones, of special values more often; None where they may not."""
        among_equals = reason_of(self.unit.operator, AMONG_EQUALS)
        if among_equals and _differing(self.unit.operator, actual[:-1], wanted[:-1]) is None:
            return among_equals
        if self.dynamo and _differing(self.unit.operator, actual, self._captured(tensors)) is None:
            return CAPTURED
        if not self.unit.special:
            return None
        if variant == "extremes" and _differing(self.unit.operator, *_where_finite(actual, wanted)) is None:
            return OVERFLOWN
        try:
            copies = list(map(_copied, tensors))
            parts = make_fx(self.sample.function, decomposition_table=decompositions())(*copies)
            if _differing(self.unit.operator, actual, parts(*map(_copied, tensors))) is None:
                return DECOMPOSED
        except Exception:  # what torch cannot trace, it does not decompose
            pass
        return reason_of(self.unit.operator, SPECIAL)

    def _captured(self, tensors: Sequence[Any]) -> Sequence[Any]:
        """The results of torch.compile with its backend that only runs what is captured."""
        torch._dynamo.reset()
        return torch.compile(self.sample.function, backend="eager")(*map(_copied, tensors))


def _rounds_alike(actual: Sequence[Any], wanted: Sequence[Any], exact: Sequence[Any]) -> bool:
    """Whether our largest error of each result is within ROUNDING times eager's."""

    def error(tensor: Any, right: Any) -> float:
        return float((tensor.double() - right.double()).abs().max()) if tensor.numel() else 0.0

    rows = zip(actual, wanted, exact, strict=True)
    return all(error(a, e) <= ROUNDING * error(w, e) for a, w, e in rows)


def _where_finite(actual: Sequence[Any], wanted: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Both results, those elements the same that are not finite in one of them."""
    pairs = [(a, w) for a, w in zip(actual, wanted, strict=True)]
    both = [
        torch.isfinite(a) & torch.isfinite(w) if a.shape == w.shape else torch.ones_like(w, dtype=torch.bool)
        for a, w in pairs
    ]
    return [torch.where(b, a, w) if a.shape == w.shape else a for b, (a, w) in zip(both, pairs, strict=True)], [*wanted]


def _differing(operator: str, actual: Sequence[Any], wanted: Sequence[Any]) -> str | None:
    for n, (ours, theirs) in enumerate(zip(actual, wanted, strict=True)):
        if ours.dtype is not theirs.dtype or ours.shape != theirs.shape:
            return f"result {n} is {ours.dtype} {tuple(ours.shape)}, expected {theirs.dtype} {tuple(theirs.shape)}"
        rtol, atol = tolerance(operator, theirs.dtype)
        try:
            torch.testing.assert_close(ours, theirs, rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            return f"result {n}: " + " ".join(str(error).split())[:200]
        except Exception as error:  # layouts that have no comparison
            return None if "layout" in str(error) or "not implemented" in str(error) else f"result {n}: {_line(error)}"
    return None


def _computed(report: Report) -> int:
    return sum(graph.compiled for graph in report.graphs)


def _through_backend(function: Callable[..., Any], tensors: Sequence[Any], report: Report) -> Callable[..., Any]:
    """The backend called as torch.compile calls it, with a graph that calls the function."""
    graph = fx.Graph()
    places = [graph.placeholder(f"x{n}") for n in range(len(tensors))]
    graph.output(graph.call_function(function, tuple(places)))
    module = fx.GraphModule(torch.nn.Module(), graph)
    return strata(module, [_copied(t) for t in tensors], options={"report": report, "threads": 1})


def _through_dynamo(function: Callable[..., Any], report: Report) -> Callable[..., Any]:
    torch._dynamo.reset()

    def backend(graph: Any, examples: list[Any]) -> Any:
        ended = getattr(graph, "compile_subgraph_reason", None)
        if ended is not None and ended.graph_break:
            report.breaks.append(str(ended.reason).strip().split("\n")[0])
        return strata(graph, examples, options={"report": report, "threads": 1})

    return torch.compile(function, backend=backend)  # type: ignore[no-any-return]


def _copied(tensor: Any) -> Any:
    """A tensor of its own with the strides of another one."""
    if tensor.layout is not torch.strided:
        return tensor.clone()
    fresh = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    if 0 in tensor.stride():
        return tensor.clone().as_strided(tensor.shape, tensor.stride()) if tensor.numel() else fresh
    return fresh.copy_(tensor)


def _of_torch(error: BaseException) -> bool:
    """Whether an error arose before our code was called."""
    at = error.__traceback__
    places = []
    while at is not None:
        places.append(at.tb_frame.f_code.co_filename)
        at = at.tb_next
    own = [place for place in places if "/compiler/" in place and "/torch/" not in place.split("/compiler/")[0]]
    last = max((n for n, place in enumerate(places) if place in own), default=-1)
    return not own or (own[-1].endswith("torch_backend/backend.py") and "aot_autograd" in "".join(places[last:]))


def _line(error: BaseException) -> str:
    return (str(error).strip().split("\n") or [""])[0][:200] or type(error).__name__
