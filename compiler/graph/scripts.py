"""A script for a canonical program, under the names of the program that a user wrote: for people to read."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from compiler.graph.provenance import Provenance, derived


def renamed(script: ModuleOp, names: Provenance) -> ModuleOp:
    """A copy of a script that calls blocks, buffers and loops what the user calls them.

        %product0 = sched.get_block %f "product0"        // names: product0 is mm, its axes are m, n, k
        %i0, %i1, %r0 = sched.get_loops %product0
        %a1.pack = sched.pack %product0 "a1" ...         // a1 is W
      ->
        %mm = sched.get_block %f "mm"
        %m, %n, %k = sched.get_loops %mm
        %W.pack = sched.pack %mm "W" ...

    What a primitive has derived from a name, such as `product0.init`, keeps its suffix. Names that the user has not
    given stay. The copy is for reading: laws may have removed computes that the user's program has.
    """
    copy = script.clone()
    labels = names.labels
    about: dict[SSAValue, str] = {}
    for op in copy.walk():
        label = _label(op, about)
        user_names = {**labels, **names.axes.get(label, {})}
        for value in op.results:
            about[value] = label
            if value.name_hint is not None:
                new = derived(value.name_hint, user_names)
                value.name_hint = new if SSAValue.is_valid_name(new) else value.name_hint
        op.properties = {key: _attribute(value, labels) for key, value in op.properties.items()}
    return copy


def _label(op: Operation, about: Mapping[SSAValue, str]) -> str:
    """The canonical label of the compute that an op is about: what it names, or what its first handle is about."""
    if op.name == "sched.get_block":
        texts = [value.data for value in op.properties.values() if isinstance(value, StringAttr)]
        return texts[0].partition(".")[0] if texts else ""
    return next((about[value] for value in op.operands if value in about), "")


def _attribute(value: Attribute, names: Mapping[str, str]) -> Attribute:
    match value:
        case StringAttr():
            return StringAttr(derived(value.data, names))
        case ArrayAttr():
            return ArrayAttr([_attribute(each, names) for each in value])
    return value
