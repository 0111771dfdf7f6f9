"""`GroupForm`: the chosen form of a group inside a whole program, or of the whole, beside the times of the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from compiler.database import Record
from compiler.support.text import counted


@dataclass(frozen=True)
class GroupForm:
    """A group, its chosen form, and the times inside the program of its other forms, by name, relative to that of the
    chosen form (above 1: slower)."""

    name: str
    form: str
    others: Mapping[str, float]

    def __str__(self) -> str:
        ratios = ", ".join(f"{form} {ratio:.2f}" for form, ratio in self.others.items())
        return f"{self.name} {self.form} ({ratios})"

    def data(self) -> Mapping[str, object]:
        """The fields as JSON data."""
        return asdict(self)


class ProgramForm(GroupForm):
    """A program as a whole, its chosen form, and the relative times of its other forms."""


def form_of(name: str, form: str, timed: Sequence[Record], kind: type[GroupForm] = GroupForm) -> GroupForm | None:
    """Return the GroupForm of the group `name` with the chosen form `form`, from the last comparison that timed this
    form; None if it was never timed, or if its cost is 0. `timed`: the records of all forms of the group, the oldest
    first; `kind`: the class of the result."""
    run = next((record.run for record in reversed(timed) if record.form == form), None)
    costs = {record.form: record.outcome.cost for record in timed if record.run == run}
    if run is None or not costs[form]:
        return None
    return kind(name, form, {slower: cost / costs[form] for slower, cost in costs.items() if slower != form})


def chosen_forms(program: str, timed: Sequence[Record]) -> tuple[GroupForm, ...]:
    """The last chosen forms of a program and its groups, without those that were never timed; `timed` are all records
    of forms, the oldest first."""
    by_group: dict[str, list[Record]] = {}
    for record in timed:
        if record.name == program or record.name.startswith(f"{program}."):
            by_group.setdefault(record.name, []).append(record)
    kinds = {program: ProgramForm}
    forms = (form_of(name, last[-1].form, last, kinds.get(name, GroupForm)) for name, last in by_group.items())
    return tuple(form for form in forms if form is not None)


def sentences(forms: Sequence[GroupForm]) -> Iterator[str]:
    """Describe chosen forms: `form of the program, timed as a whole: net channels-last (written 1.08)`; `forms of 2
    groups, timed inside the program: net.group_3 winograd-2x2 (written 1.42), ...`. Numbers are times relative to the
    chosen form's."""
    groups = [form for form in forms if not isinstance(form, ProgramForm)]
    yield from (f"form of the program, timed as a whole: {form}" for form in forms if form not in groups)
    if groups:
        yield f"forms of {counted(len(groups), 'group')}, timed inside the program: {', '.join(map(str, groups))}"
