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
LENGTHS, PEEPHOLES = 4, 7
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
        given = self.of(position)
        if given is None:
            raise Refused(f"input {position} is not given")
        return given

    def weights(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """The weights of the inputs and of the states, and the biases of both."""
        w, r, both = self.needed(1), self.needed(2), self.of(3)
        if both is None:
            return w, r, None, None
        half = both.shape[0] // 2
        return w, r, part_of(both, 0, 0, half, f"{both.name}.w"), part_of(both, 0, half, half, f"{both.name}.r")

    @property
    def name(self) -> str:
        """What the layer of this direction is called."""
        return f"{self.node.name}.{'backward' if self.reverse else 'forward'}"


def _rnn(direction: Direction, initial: Tensor | None) -> States:
    stated = direction.node.attribute("activations") or ["Tanh"] * (direction.number + 1)
    way = (stated[direction.number].lower(), direction.reverse, direction.node.optional(LENGTHS))
    return nn.rnn(direction.x, *direction.weights(), initial, *way, name=direction.name)


def _gru(direction: Direction, initial: Tensor | None) -> States:
    linear, lengths = bool(direction.node.attribute("linear_before_reset", 0)), direction.node.optional(LENGTHS)
    way = (direction.reverse, linear, lengths)
    return nn.gru(direction.x, *direction.weights(), initial, "zrh", *way, name=direction.name)


def _lstm(direction: Direction, initial: Tensor | None) -> States:
    cell, peepholes = _states(direction, 6), direction.of(PEEPHOLES)
    way = (direction.reverse, peepholes, direction.node.optional(LENGTHS))
    return nn.lstm(direction.x, *direction.weights(), initial, cell, "iofc", *way, name=direction.name)


LAYERS: dict[str, Callable[[Direction, Tensor | None], States]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _states(direction: Direction, position: int) -> Tensor | None:
    """An initial state [B, H]; with layout 1 the batch comes before the direction."""
    if not direction.node.has(position) or not direction.node.attribute("layout", 0):
        return direction.of(position)
    given = direction.node.tensor(position)
    part = part_of(given, 1, direction.number, 1, f"{given.name}.{direction.number}")
    return nn.reshape(part, (given.shape[0], given.shape[2]), name=part.name)


@handles("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> list[Tensor]:
    """A recurrent layer of one direction or both."""
    x, turned = node.tensor(0), bool(node.attribute("layout", 0))
    x = nn.transpose(x, (1, 0, 2)) if turned else x
    direction = node.attribute("direction", "forward")
    ways = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    _check(node, len(ways))
    layer = LAYERS[node.operator]
    parts = []
    for number, reverse in enumerate(ways):
        layer_way = Direction(node, number, x, reverse)
        parts.append(layer(layer_way, _states(layer_way, 5)))
    all_states = nn.stack([part[0] for part in parts], 1, name=node.name)
    last = [nn.stack([part[n] for part in parts], 0) for n in range(1, len(parts[0]))]
    if turned:
        all_states = nn.transpose(all_states, (2, 0, 1, 3), name=node.name)
        last = [nn.transpose(state, (1, 0, 2)) for state in last]
    return [all_states, *last]


def _check(node: Node, ways: int) -> None:
    """Raise Refused for what te's layers have not."""
    usual: Sequence[str] = USUAL[node.operator] * ways
    stated = node.attribute("activations") or usual
    if node.operator == "RNN":
        if any(activation not in ("Tanh", "Relu", "Sigmoid") for activation in stated):
            raise Refused(f"its activations are {', '.join(stated)}; there are Tanh, Relu and Sigmoid")
    elif list(stated) != list(usual):
        raise Refused(f"its activations are {', '.join(stated)}; supported are {', '.join(usual)}")
    if node.attribute("clip") is not None or node.attribute("input_forget", 0):
        raise Refused("it clips its sums, or couples its gates")
