"""Networks in plain torch, random weights: what benchmarks.torch_models times, and the tests take small ones of."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Residual(nn.Module):  # type: ignore[misc]
    """A block of ResNet: two 3x3 convolutions or, if `bottleneck`, 1x1, 3x3 and 1x1; beside them a shortcut, convolved
    if the shape changes."""

    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        channels_out = 4 * width if bottleneck else width
        kernels = (1, 3, 1) if bottleneck else (3, 3)
        sizes = (channels, width, width, channels_out) if bottleneck else (channels, width, channels_out)
        at = 1 if bottleneck else 0
        layers: list[nn.Module] = []
        for n, kernel in enumerate(kernels):
            step = stride if n == at else 1
            layers += [nn.Conv2d(sizes[n], sizes[n + 1], kernel, step, kernel // 2, bias=False)]
            layers += [nn.BatchNorm2d(sizes[n + 1]), nn.ReLU(inplace=True)]
        self.body = nn.Sequential(*layers[:-1])
        self.shortcut = nn.Identity()
        if stride > 1 or channels != channels_out:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, channels_out, 1, stride, bias=False), nn.BatchNorm2d(channels_out)
            )

    def forward(self, x: Tensor) -> Tensor:
        """The ReLU of body plus shortcut."""
        return F.relu(self.body(x) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):  # type: ignore[misc]
    """ResNet with `blocks` blocks in each stage. Source: He et al., Deep Residual Learning, 2015."""

    def __init__(self, blocks: Sequence[int], bottleneck: bool, width: int = 64, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, width, 7, 2, 3, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
        layers.append(nn.MaxPool2d(3, 2, 1))
        channels = width
        for stage, count in enumerate(blocks):
            for n in range(count):
                layers.append(Residual(channels, width << stage, 2 if n == 0 and stage else 1, bottleneck))
                channels = (width << stage) * (4 if bottleneck else 1)
        self.features = nn.Sequential(*layers)
        self.classes = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of classes for images [batch, 3, height, width]."""
        return self.classes(torch.flatten(F.adaptive_avg_pool2d(self.features(x), 1), 1))


class Inverted(nn.Module):  # type: ignore[misc]
    """A block of MobileNetV2: a 1x1 convolution to `factor` times the channels, a depthwise 3x3 one, a 1x1 one to
    `filters`."""

    def __init__(self, channels: int, filters: int, stride: int, factor: int) -> None:
        super().__init__()
        hidden, layers = channels * factor, []
        if factor > 1:
            layers += [nn.Conv2d(channels, hidden, 1, bias=False), nn.BatchNorm2d(hidden), nn.ReLU6()]
        layers += [nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden, bias=False), nn.BatchNorm2d(hidden)]
        self.body = nn.Sequential(
            *layers, nn.ReLU6(), nn.Conv2d(hidden, filters, 1, bias=False), nn.BatchNorm2d(filters)
        )
        self.adds = stride == 1 and channels == filters

    def forward(self, x: Tensor) -> Tensor:
        """The block's result, plus the input if stride and channels keep its shape."""
        return x + self.body(x) if self.adds else self.body(x)


class MobileNetV2(nn.Module):  # type: ignore[misc]
    """MobileNetV2. Source: Sandler et al., 2018."""

    STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))

    def __init__(self, stages: Sequence[tuple[int, int, int, int]] = STAGES, classes: int = 1000) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6()]
        channels = 32
        for factor, filters, count, stride in stages:
            for n in range(count):
                layers.append(Inverted(channels, filters, stride if n == 0 else 1, factor))
                channels = filters
        layers += [nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels), nn.ReLU6()]
        self.features, self.classes = nn.Sequential(*layers), nn.Linear(4 * channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of classes for images [batch, 3, height, width]."""
        return self.classes(F.dropout(self.features(x).mean((2, 3)), 0.2, self.training))


def _twice(channels: int, width: int) -> nn.Sequential:
    return nn.Sequential(
        *(nn.Conv2d(channels, width, 3, padding=1), nn.GroupNorm(8, width), nn.SiLU()),
        *(nn.Conv2d(width, width, 3, padding=1), nn.GroupNorm(8, width), nn.SiLU()),
    )


class UNet(nn.Module):  # type: ignore[misc]
    """A U-Net with group norms and transposed convolutions. Source: Ronneberger et al., 2015."""

    def __init__(self, width: int = 32, depth: int = 3) -> None:
        super().__init__()
        widths = [width << n for n in range(depth + 1)]
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip([3, *widths[:-2]], widths[:-1], strict=True))
        self.bottom = _twice(widths[-2], widths[-1])
        pairs = list(zip(widths[:0:-1], widths[-2::-1], strict=True))
        self.raise_ = nn.ModuleList(nn.ConvTranspose2d(a, b, 2, 2) for a, b in pairs)
        self.up = nn.ModuleList(_twice(a, b) for a, b in pairs)
        self.result = nn.Conv2d(width, 1, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return a map of one channel, of the image's size."""
        skipped = []
        for layer in self.down:
            skipped.append(layer(x))
            x = F.max_pool2d(skipped[-1], 2)
        x = self.bottom(x)
        for larger, layer in zip(self.raise_, self.up, strict=True):
            x = layer(torch.cat([skipped.pop(), larger(x)], 1))
        return self.result(x)


class Attention(nn.Module):  # type: ignore[misc]
    """Multi-head self-attention: by torch's own function or, with `longest` > 0 rows at most, written out with a causal
    mask as in GPT-2."""

    def __init__(self, width: int, heads: int, longest: int = 0) -> None:
        super().__init__()
        self.heads, self.joined, self.result = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        mask = torch.ones(longest, longest, dtype=torch.bool).tril() if longest else None
        self.register_buffer("mask", mask)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Each row attends to those that `mask` allows (None: all); written out, to itself and earlier ones, and `mask`
        is not read."""
        batch, rows, width = x.shape
        q, k, v = (t.view(batch, rows, self.heads, -1).transpose(1, 2) for t in self.joined(x).chunk(3, -1))
        if self.mask is None:
            attended = F.scaled_dot_product_attention(q, k, v, mask)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.shape[-1])
            scores = scores.masked_fill(~self.mask[:rows, :rows], float("-inf"))
            attended = scores.softmax(-1) @ v
        return self.result(attended.transpose(1, 2).reshape(batch, rows, width))


class Layer(nn.Module):  # type: ignore[misc]
    """A layer of an encoder or decoder: attention and an MLP, with norms before them if `first`, else behind the
    residual sums. `longest`: as for Attention."""

    def __init__(self, width: int, heads: int, first: bool, longest: int = 0, tanh: bool = False) -> None:
        super().__init__()
        self.attention, self.first = Attention(width, heads, longest), first
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        hidden = nn.GELU(approximate="tanh" if tanh else "none")
        self.fed = nn.Sequential(nn.Linear(width, 4 * width), hidden, nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the layer's result, of the shape of x; `mask` is passed to the attention."""
        first, second = self.norms
        if self.first:
            x = x + self.attention(first(x), mask)
            return x + self.fed(second(x))
        x = first(x + self.attention(x, mask))
        return second(x + self.fed(x))


class Bert(nn.Module):  # type: ignore[misc]
    """BERT's encoder. Source: Devlin et al., 2018."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 30522) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(512, width)
        self.norm = nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, heads, first=False) for _ in range(layers))
        self.pooled = nn.Linear(width, width)

    def forward(self, words: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Return the states of all words, and the pooled state of the first; `there` is 0 for padding, to which no word
        attends."""
        x = self.norm(self.words(words) + self.places(torch.arange(words.shape[1], device=words.device)))
        mask = there[:, None, None, :].bool()
        for layer in self.layers:
            x = layer(x, mask)
        return x, torch.tanh(self.pooled(x[:, 0]))


class Gpt2(nn.Module):  # type: ignore[misc]
    """GPT-2 without a cache, its attention written out. Source: Radford et al., 2019."""

    def __init__(
        self, layers: int = 12, width: int = 768, heads: int = 12, words: int = 50257, most: int = 1024
    ) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(most, width)
        self.layers = nn.ModuleList(Layer(width, heads, True, most, tanh=True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, words: Tensor) -> Tensor:
        """Scores of the next word at each position."""
        x = self.words(words) + self.places(torch.arange(words.shape[1], device=words.device))
        for layer in self.layers:
            x = layer(x)
        return F.linear(self.norm(x), self.words.weight)


class ViT(nn.Module):  # type: ignore[misc]
    """A vision transformer. Source: Dosovitskiy et al., 2020."""

    def __init__(self, layers: int = 12, width: int = 768, heads: int = 12, patch: int = 16, size: int = 224) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads, first=True) for _ in range(layers))
        self.norm, self.classes = nn.LayerNorm(width), nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        """Return the scores of classes for images [batch, 3, size, size]."""
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        for layer in self.layers:
            x = layer(x)
        return self.classes(self.norm(x)[:, 0])


class Unrolled(nn.Module):  # type: ignore[misc]
    """An LSTM cell applied to each step of a sequence by a loop in Python, and a dense layer of its states."""

    def __init__(self, inputs: int = 256, width: int = 512) -> None:
        super().__init__()
        self.cell, self.result = nn.LSTMCell(inputs, width), nn.Linear(width, inputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return the dense layer's result for each step of x [batch, steps, inputs]."""
        state, states = None, []
        for step in x.unbind(1):
            state = self.cell(step, state)
            states.append(state[0])
        return self.result(torch.stack(states, 1))


class Branching(nn.Module):  # type: ignore[misc]
    """A network with a branch that depends on data: one of two layers, by the sign of a sum."""

    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.first, self.one, self.other = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        """The softmax of the layer that the branch takes."""
        x = F.gelu(self.first(x))
        x = torch.relu(self.one(x)) if x.sum() > 0 else torch.tanh(self.other(x))
        return x.softmax(-1)


def numbered(shape: Sequence[int], words: int) -> Tensor:
    """Draw word numbers below `words`, always the same, as an i64 tensor of a shape."""
    return torch.randint(0, words, tuple(shape), generator=torch.Generator().manual_seed(0))
