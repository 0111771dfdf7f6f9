"""RNN, GRU and LSTM, unrolled over sequences of static length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compiler.frontends.onnx.operators.shape import part_of
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te.tensor import Tensor

USUAL = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
"""The activations of each kind of layer, of one direction."""
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
PEEPHOLES = 7
States: TypeAlias = tuple[Tensor, ...]
"""All states of a direction, and the last one, of each kind."""


@dataclass(frozen=True)
class Direction:
    """The inputs of one direction of a layer."""

    node: Node
    number: int
    x: Tensor
    reverse: bool

    def of(self, position: int) -> Tensor | None:
        """The part of an input that belongs to this direction."""
        if not self.node.has(position):
            return None
        value = self.node.value(position)
        if not isinstance(value, Tensor):
            return self.node.as_tensor(np.ascontiguousarray(value[self.number]))
        part = part_of(value, 0, self.number, 1, f"{value.name}.{self.number}")
        return nn.reshape(part, value.shape[1:], name=part.name)

    def needed(self, position: int) -> Tensor:
        """The same of an input that must be given."""
        found = self.of(position)
        if found is None:
            raise Refused(f"input {position} is not given")
        return found

    def biases(self) -> tuple[Tensor | None, Tensor | None]:
        """Those of the inputs and those of the states."""
        both = self.of(3)
        if both is None:
            return None, None
        half = both.shape[0] // 2
        return part_of(both, 0, 0, half, f"{both.name}.w"), part_of(both, 0, half, half, f"{both.name}.r")

    @property
    def name(self) -> str:
        """What the layer of this direction is called."""
        return f"{self.node.name}.{'backward' if self.reverse else 'forward'}"


def _rnn(one: Direction, initial: Tensor | None) -> States:
    stated = one.node.attribute("activations") or ["Tanh"] * (one.number + 1)
    w, r, (bias, recurrent) = one.needed(1), one.needed(2), one.biases()
    return nn.rnn(one.x, w, r, bias, recurrent, initial, stated[one.number].lower(), one.reverse, name=one.name)


def _gru(one: Direction, initial: Tensor | None) -> States:
    w, r, (bias, recurrent) = one.needed(1), one.needed(2), one.biases()
    linear = bool(one.node.attribute("linear_before_reset", 0))
    return nn.gru(one.x, w, r, bias, recurrent, initial, "zrh", one.reverse, linear, name=one.name)


def _lstm(one: Direction, initial: Tensor | None) -> States:
    w, r, (bias, recurrent) = one.needed(1), one.needed(2), one.biases()
    cell, peepholes = _states(one, 6), one.of(PEEPHOLES)
    return nn.lstm(one.x, w, r, bias, recurrent, initial, cell, "iofc", one.reverse, peepholes, name=one.name)


LAYERS: dict[str, Callable[[Direction, Tensor | None], States]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _states(one: Direction, position: int) -> Tensor | None:
    """An initial state [B, H]; with layout 1 the batch comes before the direction."""
    if not one.node.has(position) or not one.node.attribute("layout", 0):
        return one.of(position)
    given = one.node.tensor(position)
    part = part_of(given, 1, one.number, 1, f"{given.name}.{one.number}")
    return nn.reshape(part, (given.shape[0], given.shape[2]), name=part.name)


@handles("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> list[Tensor]:
    """A recurrent layer of one direction or both."""
    x, turned = node.tensor(0), bool(node.attribute("layout", 0))
    x = nn.transpose(x, (1, 0, 2)) if turned else x
    direction = node.attribute("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    _check(node, x, len(ways))
    layer = LAYERS[node.operator]
    parts = []
    for number, reverse in enumerate(ways):
        one = Direction(node, number, x, reverse)
        parts.append(layer(one, _states(one, 5)))
    all_states = nn.stack([part[0] for part in parts], 1, name=node.name)
    last = [nn.stack([part[n] for part in parts], 0) for n in range(1, len(parts[0]))]
    if turned:
        all_states = nn.transpose(all_states, (2, 0, 1, 3), name=node.name)
        last = [nn.transpose(one, (1, 0, 2)) for one in last]
    return [all_states, *last]


def _check(node: Node, x: Tensor, ways: int) -> None:
    """Raise Refused for what te's layers have not."""
    usual: Sequence[str] = USUAL[node.operator] * ways
    stated = node.attribute("activations") or usual
    if node.operator == "RNN":
        if any(one not in ("Tanh", "Relu", "Sigmoid") for one in stated):
            raise Refused(f"its activations are {', '.join(stated)}; there are Tanh, Relu and Sigmoid")
    elif list(stated) != list(usual):
        raise Refused(f"its activations are {', '.join(stated)}; supported are {', '.join(usual)}")
    if node.attribute("clip") is not None or node.attribute("input_forget", 0):
        raise Refused("it clips its sums, or couples its gates")
    if node.has(4) and any(n != x.shape[0] for n in node.integers(4, "the lengths of its sequences")):
        raise Refused("its sequences have other lengths than the tensor")
