"""RNN, GRU and LSTM, unrolled over sequences of static length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from compiler.frontends.onnx.operators.shape import slice_axis
from compiler.frontends.onnx.table import Node, Refused, handles
from compiler.te import nn
from compiler.te.tensor import Tensor

DEFAULT_ACTIVATIONS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
"""The default activations of each operator for one direction."""
LENGTHS, PEEPHOLES = 4, 7
States: TypeAlias = tuple[Tensor, ...]
"""A direction's states of all steps, [T, B, H], then its final states, [B, H]."""


@dataclass(frozen=True)
class Direction:
    """Direction `number` of a recurrent layer on x, [T, B, I]; `reverse` runs from the last step to the first."""

    node: Node
    number: int
    x: Tensor
    reverse: bool

    def part(self, position: int) -> Tensor | None:
        """This direction's slice of the input at a position, without the first dimension; None without that input."""
        if not self.node.has(position):
            return None
        value = self.node.value(position)
        if not isinstance(value, Tensor):
            return self.node.as_tensor(np.ascontiguousarray(value[self.number]))
        part = slice_axis(value, 0, self.number, 1, f"{value.name}.{self.number}")
        return nn.reshape(part, value.shape[1:], name=part.name)

    def required(self, position: int) -> Tensor:
        """This direction's slice of the input at a position, without the first dimension. Raises Refused without that
        input."""
        slice_tensor = self.part(position)
        if slice_tensor is None:
            raise Refused(f"input {position} is not given")
        return slice_tensor

    def weights(self) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """The input weights, the recurrent weights, and the biases of both; None without biases."""
        w, r, biases = self.required(1), self.required(2), self.part(3)
        if biases is None:
            return w, r, None, None
        half = biases.shape[0] // 2
        return (
            w,
            r,
            slice_axis(biases, 0, 0, half, f"{biases.name}.w"),
            slice_axis(biases, 0, half, half, f"{biases.name}.r"),
        )

    @property
    def name(self) -> str:
        """The name of this direction's tensors."""
        return f"{self.node.name}.{'backward' if self.reverse else 'forward'}"


def _rnn(direction: Direction, initial: Tensor | None) -> States:
    stated = direction.node.attribute("activations") or ["Tanh"] * (direction.number + 1)
    options = (stated[direction.number].lower(), direction.reverse, direction.node.optional(LENGTHS))
    return nn.rnn(direction.x, *direction.weights(), initial, *options, name=direction.name)


def _gru(direction: Direction, initial: Tensor | None) -> States:
    linear, lengths = bool(direction.node.attribute("linear_before_reset", 0)), direction.node.optional(LENGTHS)
    options = (direction.reverse, linear, lengths)
    return nn.gru(direction.x, *direction.weights(), initial, "zrh", *options, name=direction.name)


def _lstm(direction: Direction, initial: Tensor | None) -> States:
    cell, peepholes = _initial_state(direction, 6), direction.part(PEEPHOLES)
    options = (direction.reverse, peepholes, direction.node.optional(LENGTHS))
    return nn.lstm(direction.x, *direction.weights(), initial, cell, "iofc", *options, name=direction.name)


LAYERS: dict[str, Callable[[Direction, Tensor | None], States]] = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _initial_state(direction: Direction, position: int) -> Tensor | None:
    """Return this direction's slice [B, H] of an initial state, the input at a position, [directions, B, H], or with
    layout 1 [B, directions, H]; None without that input."""
    if not direction.node.has(position) or not direction.node.attribute("layout", 0):
        return direction.part(position)
    states = direction.node.tensor(position)
    direction_state = slice_axis(states, 1, direction.number, 1, f"{states.name}.{direction.number}")
    return nn.reshape(direction_state, (states.shape[0], states.shape[2]), name=direction_state.name)


@handles("RNN", "GRU", "LSTM")
def recurrent(node: Node) -> list[Tensor]:
    """A recurrent layer of D = 1 or 2 directions: the states of all steps, [T, D, B, H], then the final states (two for
    LSTM), [D, B, H]; with layout 1 [B, T, D, H] and [B, D, H]. Raises Refused for activations that te's layers lack,
    clipped sums and coupled gates."""
    x, batch_first = node.tensor(0), bool(node.attribute("layout", 0))
    x = nn.transpose(x, (1, 0, 2)) if batch_first else x
    direction = node.attribute("direction", "forward")
    reversals = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}[direction]
    _check(node, len(reversals))
    layer = LAYERS[node.operator]
    sides = []
    for number, reverse in enumerate(reversals):
        side = Direction(node, number, x, reverse)
        sides.append(layer(side, _initial_state(side, 5)))
    all_states = nn.stack([outputs[0] for outputs in sides], 1, name=node.name)
    final_states = [nn.stack([outputs[n] for outputs in sides], 0) for n in range(1, len(sides[0]))]
    if batch_first:
        all_states = nn.transpose(all_states, (2, 0, 1, 3), name=node.name)
        final_states = [nn.transpose(state, (1, 0, 2)) for state in final_states]
    return [all_states, *final_states]


def _check(node: Node, directions: int) -> None:
    """Raise Refused for activations that te's layers lack, and for the attributes `clip` and `input_forget`."""
    defaults: Sequence[str] = DEFAULT_ACTIVATIONS[node.operator] * directions
    activations = node.attribute("activations") or defaults
    if node.operator == "RNN":
        if any(activation not in ("Tanh", "Relu", "Sigmoid") for activation in activations):
            raise Refused(f"its activations are {', '.join(activations)}; there are Tanh, Relu and Sigmoid")
    elif list(activations) != list(defaults):
        raise Refused(f"its activations are {', '.join(activations)}; supported are {', '.join(defaults)}")
    if node.attribute("clip") is not None or node.attribute("input_forget", 0):
        raise Refused("it clips its sums, or couples its gates")
