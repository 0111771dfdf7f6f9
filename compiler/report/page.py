"""`page`: a report as the lines of an HTML file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from compiler.autotune.display.forms import sentences
from compiler.database.outcome import FAILURES, NETWORK
from compiler.explain.text import loop_label
from compiler.report import pictures
from compiler.report.html import STYLE, Cell, collapsible, document, escaped, figure, listing, paragraph, table
from compiler.report.importance import MIN_TRIALS, Choices, Importance, choices_of, decisions_of
from compiler.report.listings import Listing, shortened
from compiler.report.listings import listing as machine_code
from compiler.report.programs import ProgramFacts, TuningReport
from compiler.report.svg import Drawing
from compiler.report.tasks import Failure, TaskFacts, is_written
from compiler.support.text import counted, duration

MAX_SCRIPTS = 10
"""The number of best scripts that are listed."""
MAX_OPEN = 3
"""The number of tasks that are not collapsed."""
CODES = 4
"""The default number of tasks with machine code."""
MAX_NAMES = 4
"""The largest number of tasks without a whole program that the title names; of more it has the count."""
MAX_LAYERS = 2
"""The number of layers of a task that the table of tasks shows."""
MAX_LOSSES = 3
"""The number of tasks whose time above the bound the summary names."""


def page(report: TuningReport, codes: int = CODES) -> Iterator[str]:
    """Yield the lines of a page, with the machine code of the `codes` tasks of each program that take most time."""
    title = _title(report)
    yield from document(f"{title}: tuning", STYLE)
    yield f"<h1>Tuning of {escaped(title)}</h1>"
    yield from map(paragraph, report.warnings)
    for number, program in enumerate(report.programs):
        yield from _program(program, f"p{number}", codes)
    yield "</body></html>"


def _title(report: TuningReport) -> str:
    programs = [program.name for program in report.programs if program.is_whole]
    tasks = [task.name for program in report.programs if not program.is_whole for task in program.tasks]
    named = tasks if len(tasks) <= MAX_NAMES else [counted(len(tasks), "task")]
    return ", ".join(dict.fromkeys((*programs, *named)))


def _program(program: ProgramFacts, anchor: str, codes: int) -> Iterator[str]:
    heading = program.name if program.is_whole else counted(len(program.tasks), "task")
    time = (
        ""
        if program.seconds is None
        else f": {duration(program.seconds)} a run{' so far' if program.unmeasured else ''}"
    )
    yield f"<h2>{escaped(heading + time)}</h2>"
    yield paragraph(_where(program))
    if program.is_whole:
        yield paragraph(_summary(program))
        yield from _forms(program)
    else:
        yield paragraph("These tasks are not all of one known program: times are those of one call.")
    if program.unmeasured:
        yield paragraph(f"Nothing was measured of {', '.join(program.unmeasured)}.")
    yield from _overview(program, anchor)
    yield '<div class="pictures">'
    yield from _pictures(_program_pictures(program))
    yield "</div>"
    if len(program.tasks) > 1:
        yield from _failures((program.short(task), failure) for task in program.tasks for failure in task.failures)
    for number, task in enumerate(program.tasks):
        parts = _task(task, number < codes)
        yield from collapsible(_headline(program, task), parts, f"{anchor}-{number}", number < MAX_OPEN)


def _where(program: ProgramFacts) -> str:
    key = program.key
    timing = "timed as in the network, with cold weights" if key.timing == NETWORK else "timed with warm caches"
    days = sorted(record.created[:10] for task in program.tasks for record in task.records)
    when = f"; measured {days[0]}" + (f" to {days[-1]}" if days[-1] != days[0] else "") if days else ""
    return f"{key.machine}, {counted(key.threads, 'thread')}, policy {key.policy}, {timing}{when}."


def _summary(program: ProgramFacts) -> str:
    if program.seconds is None:
        return "Nothing was measured."
    calls = sum(task.calls or 0 for task in program.tasks)
    sentence = f"The {calls} calls of {len(program.tasks)} groups take {duration(program.seconds)} together."
    bound = program.bound_seconds
    if bound is not None:
        reached = f"{bound / program.seconds:.0%} of the bound"
        sentence += f" At the machine's ceiling they would take {duration(bound)}: the program reaches {reached}."
    losses = [(loss, program.short(task)) for task in program.tasks if (loss := task.loss) is not None and loss > 0]
    largest = sorted(losses, reverse=True)[:MAX_LOSSES]
    names = ", ".join(f"{name} ({duration(loss)})" for loss, name in largest)
    sentence += f" Most time above the bound: {names}." if names else ""
    unbound = [program.short(task) for task in program.tasks if task.bound is None and task.best is not None]
    return f"{sentence} The bound is not known of {', '.join(unbound)}." if unbound else sentence


def _forms(program: ProgramFacts) -> Iterator[str]:
    yield from (paragraph(f"{said[0].upper()}{said[1:]}.") for said in sentences(program.forms))


def _overview(program: ProgramFacts, anchor: str) -> Iterator[str]:
    """Yield the table of tasks, most time first, with links to the sections `anchor`-NUMBER; the dark part of a bar is
    the time at the bound."""
    times = ("all calls", "share", "calls", "one call") if program.is_whole else ("one call",)
    layer = ("layers",) if program.has_layers else ()
    headings = ("task", *times, "of the bound", "gain", "trials", "failed", "computes", *layer)
    longest = max((task.together or 0.0 for task in program.tasks), default=0.0)
    rows: list[Sequence[Cell | str]] = [
        (
            Cell(program.short(task), f"{anchor}-{number}"),
            *_times(program, task, longest),
            *_results(task),
            *([_layers(task)] if layer else []),
        )
        for number, task in enumerate(program.tasks)
    ]
    if program.seconds is not None:
        rows.append(_sum(program))
    yield from table(headings, rows, has_sum=program.seconds is not None)
    if any(task.bound_seconds for task in program.tasks):
        yield paragraph("The dark part of a bar is the time at the machine's ceiling.")
    yield paragraph("The gain is over the program as written, over the first script where that was not measured.")


def _times(program: ProgramFacts, task: TaskFacts, longest: float) -> Iterator[Cell]:
    if task.together is None or task.seconds is None:
        yield from (Cell("") for _ in range(4 if program.is_whole else 1))
        return
    bound, share = task.bound_seconds, program.share(task)
    tip = "" if bound is None else f"{duration(bound)} at the machine's ceiling"
    dark = None if bound is None else bound / longest
    yield Cell(duration(task.together), bar=task.together / longest, dark=dark, tip=tip)
    if program.is_whole:
        yield Cell("" if share is None else f"{share:.1%}")
        yield Cell(str(task.calls))
        yield Cell(duration(task.seconds))


def _sum(program: ProgramFacts) -> Sequence[Cell | str]:
    assert program.seconds is not None
    calls = str(sum(task.calls or 0 for task in program.tasks))
    bound = "" if program.bound_seconds is None else f"{program.bound_seconds / program.seconds:.0%}"
    trials = str(sum(len(task.scripts) for task in program.tasks))
    failed = sum(failure.count for task in program.tasks for failure in task.failures)
    layer = [""] if program.has_layers else []
    return ("sum", duration(program.seconds), "100.0%", calls, "", bound, "", trials, str(failed or ""), "", *layer)


def _results(task: TaskFacts) -> Iterator[str]:
    yield "" if task.bound is None else f"{task.bound:.0%}"
    yield "" if task.gain is None else f"{task.gain:.2f} x"
    yield str(len(task.scripts))
    yield str(sum(failure.count for failure in task.failures) or "")
    yield task.operator


def _layers(task: TaskFacts, most: int = MAX_LAYERS) -> str:
    """List the layers of a task, at most `most`: `layer1.0.conv1, layer1.1.conv1 and 2 more`."""
    more = f" and {len(task.layers) - most} more" if len(task.layers) > most else ""
    return ", ".join(task.layers[:most]) + more


def _program_pictures(program: ProgramFacts) -> Iterator[tuple[Drawing | None, str]]:
    yield (
        pictures.roofline(program),
        "Each disc is a task, its area the part of the time, the line what the machine can do: large discs far below "
        "it are worth work.",
    )
    if program.memory is not None:
        memory = program.memory
        sizes = f"{memory.size / pictures.MEBI:.3g} MiB hold {memory.sum / pictures.MEBI:.3g} MiB of temporaries"
        yield (
            pictures.memory(memory),
            f"Each rectangle is a temporary from the first to the last call that uses it: {sizes}; the line is what is "
            "live. Groups that write in the place of an input need less.",
        )
    disturbance = program.disturbance
    share = "" if disturbance is None else f" ({disturbance.share:.1%} in all, {disturbance.repeated} samples repeated)"
    yield (
        pictures.busy(program.disturbances),
        f"How much of the measured time other work took from the processor{share}: times of high bars are less sure.",
    )


def _pictures(drawn: Iterable[tuple[Drawing | None, str]]) -> Iterator[str]:
    return (figure(drawing.svg(), caption) for drawing, caption in drawn if drawing is not None)


def _headline(program: ProgramFacts, task: TaskFacts) -> str:
    """The title of a task: `net.group_3: product 768 to 128x768, of encoder.0.dense, 3.1 ms a call, 12.5% of the
    time`."""
    share = program.share(task)
    facts = [task.operator] if task.operator else []
    facts += [f"of {_layers(task)}"] if task.layers else []
    facts += ["nothing was measured"] if task.seconds is None else [f"{duration(task.seconds)} a call"]
    facts += [] if share is None else [f"{share:.1%} of the time"]
    return f"{task.name}: {', '.join(facts)}"


def _task(task: TaskFacts, has_code: bool) -> Iterator[str]:
    yield paragraph(_searched(task))
    if len(task.layers) > MAX_LAYERS:
        yield paragraph(f"Its calls are of the layers {_layers(task, len(task.layers))}.")
    disturbance = task.disturbance
    if disturbance is not None and disturbance.matters:
        yield paragraph(f"{disturbance}.".capitalize())
    yield from _failures((f"trial {failure.number}", failure) for failure in task.failures)
    yield '<div class="pictures">'
    yield from _pictures(_task_pictures(task))
    yield "</div>"
    yield from _importance(choices_of(task))
    yield from _ranking(task)
    yield from _scripts(task, has_code)


def _searched(task: TaskFacts) -> str:
    tried = (
        f"Program {task.key.program[:12]}: {counted(len(task.scripts), 'script')} tried, {len(task.ranked)} measured."
    )
    if task.best is None or task.seconds is None or task.baseline is None or task.gain is None:
        return tried
    against = "the program as written" if is_written(task.baseline) else f"the first, trial {task.baseline.number}"
    reached = "" if task.bound is None else f", {task.bound:.0%} of the bound"
    if task.baseline is task.best:
        return f"{tried} None is faster than {against}: {duration(task.seconds)}{reached}.{_choice(task)}"
    best = f"The best is trial {task.best.number}: {duration(task.seconds)}{reached}"
    return f"{tried} {best}, {task.gain:.3g} times as fast as {against}.{_choice(task)}"


def _choice(task: TaskFacts) -> str:
    """A sentence on the script chosen for the group inside its program; empty if it is the best one."""
    if task.chosen is None or task.best is None or task.chosen.script == task.best.first.script:
        return ""
    what = "the default" if task.chosen.default else "an earlier script"
    return f" Inside the program {what} was faster, and is chosen."


def _failures(failures: Iterable[tuple[str, Failure]]) -> Iterator[str]:
    """Yield the table of failures by kind: their number, and the first of each with its origin; nothing without
    failures. failures: pairs of an origin, as text, and a failure."""
    by_kind: dict[str, list[tuple[str, Failure]]] = {}
    for origin, failure in failures:
        by_kind.setdefault(failure.kind, []).append((origin, failure))
    rows = [
        (
            kind,
            FAILURES.get(kind, ""),
            str(sum(failure.count for _, failure in of_kind)),
            of_kind[0][0],
            " ".join(of_kind[0][1].reason.split()),
        )
        for kind, of_kind in by_kind.items()
    ]
    if rows:
        yield "<h3>Rejected</h3>"
        yield from table(("failed", "because", "scripts", "the first", "its reason"), rows, words=2)


def _task_pictures(task: TaskFacts) -> Iterator[tuple[Drawing | None, str]]:
    yield (
        pictures.curve(task),
        "Each disc is a script, the line the best so far: where it is flat, more trials bring little. Discs at the "
        "upper edge took longer.",
    )
    ranking = task.ranking
    right = "" if ranking.accuracy is None else f" Of {ranking.total} pairs, {ranking.accuracy:.0%} were in order."
    yield (
        pictures.predicted(task),
        f"What the cost model promised before a script was measured, and what it took.{right}",
    )


def _importance(choices: Choices) -> Iterator[str]:
    every = [choice for choice in (choices.sketches, *choices.choices) if choice is not None]
    yield "<h3>Importance of choices</h3>"
    if not every:
        yield paragraph(
            f"Nothing is known with so few trials: {choices.trials} of the best sketch, {MIN_TRIALS} are needed."
        )
        return
    yield paragraph(
        f"How much of the spread of times a choice explains by itself. The best sketch has {choices.trials} trials."
    )
    rows = [(choice.name, Cell(f"{choice.share:.0%}", bar=choice.share), _options(choice)) for choice in every]
    yield from table(("choice", "explains", "mean time by option"), rows)


def _options(choice: Importance) -> str:
    """List the options of a choice, best first, with mean times and numbers of trials: `8: 1.2 ms (7)`."""
    times = [f"{option.name}: {duration(option.seconds)} ({option.trials})" for option in choice.options[:MAX_SCRIPTS]]
    more = len(choice.options) - len(times)
    return ", ".join(times) + (f", {more} more" if more else "")


def _ranking(task: TaskFacts) -> Iterator[str]:
    if task.best is None or task.seconds is None:
        return
    rows = []
    for script in task.ranked[:MAX_SCRIPTS]:
        disturbance = script.outcome.disturbance
        away = "" if disturbance is None else f"{disturbance.share:.0%}"
        times = script.outcome.cost / task.best.outcome.cost
        samples = str(len(script.outcome.seconds))
        rows.append((str(script.number), duration(task.seconds_of(script)), f"{times:.3f}", samples, away))
    yield from collapsible(
        f"The {counted(len(rows), 'best script')}" if len(rows) > 1 else "The best script",
        table(("trial", "a call", "times the best", "samples", "off the processor"), rows, words=0),
    )


def _scripts(task: TaskFacts, has_code: bool) -> Iterator[str]:
    if task.best is None or task.baseline is None:
        return
    sides = [("Best", task.best)]
    if task.baseline is not task.best:
        sides.insert(0, ("As written" if is_written(task.baseline) else "Baseline, the first script", task.baseline))
    yield '<div class="sides">'
    for name, script in sides:
        yield f"<section><h3>{name}: {duration(task.seconds_of(script))}</h3>"
        decided = ", ".join(f"{choice} {option}" for choice, option in decisions_of(script.first.script))
        yield paragraph(f"Its choices: {decided or 'none'}.")
        if has_code:
            yield from _code(machine_code(task, script))
        yield from collapsible("Its script", [listing(script.first.script)])
        yield "</section>"
    yield "</div>"


def _code(code: Listing) -> Iterator[str]:
    if not code.loops:
        yield paragraph(code.reason or "The machine code has no loops.")
        return
    headings = ("machine loop", "instructions", "FLOP", "cycles", "of the peak", "limit")
    rows: Sequence[Sequence[str]] = [
        (
            loop_label(loop),
            str(loop.census.instructions),
            str(loop.census.flops or ""),
            f"{loop.estimate.cycles:.1f}",
            "" if loop.percent is None else f"{loop.percent:.0f}%",
            loop.estimate.limit,
        )
        for loop in code.loops
    ]
    yield from table(headings, rows)
    for loop in code.most_work:
        yield from collapsible(f"Assembly of {loop_label(loop)}", [listing(shortened(loop.text))])
