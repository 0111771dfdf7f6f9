"""AArch64 instructions in LLVM's syntax: their kinds and operands, as those of x86 in instructions.py."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from compiler.targets.cpu.instructions import Instruction

_ELEMENT = {"b": 8, "h": 16, "s": 32, "d": 64, "q": 128}
_ARRANGED = re.compile(r"v\d+\.(\d+)([bhsd])")
_LANE = re.compile(r"v\d+\.\d*[bhsd]\[\d+\]|\{[^}]*\}\[\d+\]")
_SCALABLE = re.compile(r"z\d+\.([bhsd])|z\d+")
_SCALAR = re.compile(r"([bhsdq])\d+")
_FUSED = re.compile(r"fn?m(?:add|sub)|fml[as]l?2?|fn?m(?:ad|sb)")
_DOT = re.compile(r"[us]?[us]dot|bfdot|[us]?[us]mmla|bfmmla|bfmlal[bt]|[us]?ml[as]l?2?")
_ARITHMETIC = re.compile(r"f(?:n?mulx?|add|sub|abd|div|sqrt|addp|(?:min|max)(?:nm)?p?)")
_PRODUCTS = {"bfdot": 8, "bfmmla": 16, "bfmlalb": 4, "bfmlalt": 4}
"""The products of bf16 of an instruction on 128 bits."""
_ACCUMULATES = re.compile(r"bit|bif|bsl|ins|movk|tbx|s[lr]i|[us]?[us]?sra|[us]adalp|bf[im]\w*")
_COMPARES = re.compile(r"f?cmpe?|cmn|tst|f?ccmpe?")
_KINDS = {
    "broadcast": re.compile(r"dup|ld[1-4]r"),
    "shuffle": re.compile(r"zip[12]|uzp[12]|trn[12]|ext|tb[lx]|rev\d+|ins"),
    "division": re.compile(r"f(?:div|sqrt)|[su]div"),
    "call": re.compile(r"blr?"),
    "branch": re.compile(r"b|b\.\w+|br|cbn?z|tbn?z"),
    "prefetch": re.compile(r"prfu?m"),
    "load": re.compile(r"ld(?!adr)\w+"),
    "store": re.compile(r"st\w+"),
}


@dataclass(frozen=True)
class AArch64Instruction(Instruction):
    """An instruction of AArch64: the first operand is the destination, unlike in AT&T syntax. scale: the bits of SVE's
    registers divided by 128."""

    scale: int = 1

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Its kinds: fma, load, store, broadcast, shuffle, division, call, branch and prefetch; an access of one lane
        is a shuffle, too."""
        kinds = {kind for kind, pattern in _KINDS.items() if pattern.fullmatch(self.mnemonic)}
        if _FUSED.fullmatch(self.mnemonic) or _DOT.fullmatch(self.mnemonic):
            kinds.add("fma")
        if self._first_is_lane and (self.mnemonic in ("mov", "ins") or kinds & {"load", "store"}):
            kinds.add("shuffle")
        return frozenset(kinds)

    @cached_property
    def _first_is_lane(self) -> bool:
        return bool(self.operands) and _LANE.fullmatch(self.operands[0]) is not None

    @property
    def is_jump(self) -> bool:
        """Whether it is an unconditional jump."""
        return self.mnemonic in ("b", "br")

    @cached_property
    def memory(self) -> str | None:
        """Its memory operand; None without one."""
        return next((o for o in self.operands if o.startswith("[")), None)

    @cached_property
    def bits(self) -> int:
        """The bits of the widest vector register among its operands, 64 for scalars in them; 0 if there is none."""
        widths = [int(count) * _ELEMENT[element] for o in self.operands for count, element in _ARRANGED.findall(o)]
        scalars = (_SCALAR.fullmatch(o) for o in self.operands)
        widths += [128 if match[1] == "q" else 64 for match in scalars if match is not None]
        widths += [128 * self.scale for o in self.operands if _SCALABLE.match(o.strip("{ "))]
        return max([*widths, *(64 for o in self.operands if _LANE.fullmatch(o))], default=0)

    @property
    def registers(self) -> str:
        """The name of its widest vector registers, q, d, or z of SVE; "" without them."""
        return {0: "", 64: "d", 128: "q"}.get(self.bits, "z")

    @cached_property
    def float_bits(self) -> int:
        """The bits of an element of its floating-point arithmetic; 0 for other instructions."""
        if self.mnemonic in _PRODUCTS:
            return 16
        if not (_FUSED.fullmatch(self.mnemonic) or _ARITHMETIC.fullmatch(self.mnemonic)):
            return 0
        forms = ((_ARRANGED, 2), (_SCALABLE, 1), (_SCALAR, 1))
        matches = ((form.fullmatch(self.operands[0]), group) for form, group in forms)
        return next((_ELEMENT[match[group]] for match, group in matches if match), 0)

    @cached_property
    def lanes(self) -> int:
        """The number of elements of its floating-point arithmetic: 1 for scalars, 0 for other instructions; of products
        of bf16 the number of products."""
        if self.float_bits and _SCALABLE.fullmatch(self.operands[0]):
            return self.bits // self.float_bits
        arranged = _ARRANGED.fullmatch(self.operands[0]) if self.float_bits else None
        return _PRODUCTS.get(self.mnemonic, int(arranged[1])) if arranged else int(bool(self.float_bits))

    @property
    def is_scalar(self) -> bool:
        """Whether its floating-point arithmetic is on scalars."""
        return self.lanes == 1

    @property
    def target(self) -> str | None:
        """The target of a jump or a direct call; None for indirect ones and other instructions."""
        has_target = {"branch", "call"} & self.kinds and self.mnemonic not in ("br", "blr")
        return self.operands[-1] if has_target else None

    @property
    def is_move(self) -> bool:
        """Whether it is a copy of a scalar register, a plain load or store, or a no-op; vector units copy vectors."""
        plain = (self.mnemonic in ("mov", "nop") and not self.bits) or bool({"load", "store"} & self.kinds)
        return plain and not {"shuffle", "broadcast"} & self.kinds

    @property
    def lanes_moved(self) -> int:
        """1: there are no gathers and scatters."""
        return 1

    @cached_property
    def addressed(self) -> tuple[str, ...]:
        """The registers of its address, by family: x8, v3."""
        return _families(self.memory or "")

    @cached_property
    def _destinations(self) -> tuple[str, ...]:
        """The operands that are written: the first, both of the load of a pair; none of stores, jumps, calls,
        prefetches and comparisons."""
        if {"store", "branch", "call", "prefetch"} & self.kinds or _COMPARES.fullmatch(self.mnemonic):
            return ()
        return self.operands[: 2 if self.mnemonic.startswith("ldp") else 1]

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The input registers, by family, without those of its address; the destination too if the instruction
        accumulates into it or changes a lane of it."""
        accumulates = _ACCUMULATES.fullmatch(self.mnemonic) or self.mnemonic.startswith(("fml", "bfm"))
        keeps = accumulates or _DOT.fullmatch(self.mnemonic) or ("shuffle" in self.kinds and self._first_is_lane)
        sources = self.operands if keeps else self.operands[len(self._destinations) :]
        return tuple(name for o in sources if not o.startswith("[") for name in _families(o))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The output registers, by family: its destinations, and an address that it advances."""
        memory = next((n for n, o in enumerate(self.operands) if o.startswith("[")), len(self.operands))
        advances = self.operands[memory:] and (self.operands[memory].endswith("!") or self.operands[memory + 1 :])
        return tuple(n for o in self._destinations for n in _families(o)) + (self.addressed[:1] if advances else ())


def parse_aarch64(text: str, loop: int = 0, scale: int = 1) -> Instruction:
    """Parse an instruction from a line. loop: its debug location, the number of its loop, or 0. scale: the bits of
    SVE's registers divided by 128."""
    mnemonic, _, rest = text.partition("\t") if "\t" in text else text.partition(" ")
    operands = re.split(r",(?![^\[{]*[\]}])", rest) if rest.strip() else []
    return AArch64Instruction(mnemonic.strip(), tuple(operand.strip() for operand in operands), loop, scale)


def _families(operand: str) -> tuple[str, ...]:
    """Return the register families of an operand: `w8` and `x8` are `x8`, `q0`, `s0` and `v0.4s` are `v0`."""
    names = re.findall(r"\b(?:sp|[wxvzqdshb]\d+)\b", operand)
    return tuple(name if name == "sp" else ("x" if name[0] in "wx" else "v") + name[1:] for name in names)
