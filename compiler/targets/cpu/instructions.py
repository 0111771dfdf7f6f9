"""x86 instructions in LLVM's AT&T syntax: their kinds and operands, and counts of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

_ELEMENT = {"ps": 32, "ss": 32, "pd": 64, "sd": 64, "ph": 16, "sh": 16}
_REGISTER = re.compile(r"%([xyz])mm(\d+)")
_FLOAT = r"([ps][sdh])"
_FUSED = re.compile(rf"vfn?m(?:add|sub)(?:add|sub)?\d*{_FLOAT}")
_ARITHMETIC = re.compile(rf"v?(?:addsub|add|sub|mul|div|sqrt|min|max){_FLOAT}")
_DOT = re.compile(r"vdpbf16ps|vpdp\w+|vpmadd52\w+")
_NO_ACCESS = re.compile(r"lea\w?|nop\w?|prefetch\w*|clflush\w*|cldemote")
_MOVE = re.compile(r"v?mov(?:[bwlq]|abs[bwlq]|[au]p[sd]|dq[au](?:8|16|32|64)?|s[sdh]|[dq])|nop\w?")
_JUMP = re.compile(r"j[a-z]+")
_READS_LAST = re.compile(
    r"cmp[bwlq]?|test[bwlq]|bt[wlq]?|v?u?comis[sdh]|vptest|vtestp[sd]|push[wlq]?|mul[bwlq]|i?div[bwlq]"
)
_OVERWRITES_LAST = re.compile(r"mov\w*|set\w+|pop[wlq]?|pext\w+|extract\w+")
_KINDS = {
    "broadcast": re.compile(r"v?p?broadcast\w*|v?movddup"),
    "gather": re.compile(r"vp?gather\w+"),
    "scatter": re.compile(r"vp?scatter\w+"),
    "shuffle": re.compile(
        r"v?perm[^q]\w*|vperm\w*|v?p?shuf\w*|v?p?unpck\w*|v?unpck\w*|v?p?insert\w*|v?p?extract\w*|v?p?align\w*"
        r"|v?mov(?:sh|sl)dup|v?mov(?:hl|lh|h|l)ps|vp?(?:compress|expand)\w*|vshuf\w*"
    ),
    "division": re.compile(r"v?(?:div|sqrt)[ps][sdh]|i?div[bwlq]"),
    "call": re.compile(r"callq?"),
    "branch": _JUMP,
    "prefetch": re.compile(r"prefetch\w*"),
}


@dataclass(frozen=True)
class Instruction:
    """An instruction, its operands as in AT&T syntax, the destination last; `loop`: its debug location, the number of
    its loop, or 0."""

    mnemonic: str
    operands: tuple[str, ...] = ()
    loop: int = 0

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(self.operands)}".rstrip()

    @cached_property
    def kinds(self) -> frozenset[str]:
        """Its kinds: fma, load, store, broadcast, gather, scatter, shuffle, division, call, branch and prefetch;
        several, such as fma and load, or none. Dot products, of integers too, are fma."""
        kinds = {kind for kind, pattern in _KINDS.items() if pattern.fullmatch(self.mnemonic)}
        if _FUSED.fullmatch(self.mnemonic) or _DOT.fullmatch(self.mnemonic):
            kinds.add("fma")
        if any("{1to" in operand for operand in self.operands):
            kinds.add("broadcast")
        reads, writes = self._accesses
        return frozenset(kinds | ({"load"} if reads else set()) | ({"store"} if writes else set()))

    @cached_property
    def memory(self) -> str | None:
        """Its memory operand, without decorations such as `{%k1}`; None without one; the address of a lea is one
        too."""
        return next((o.partition("{")[0].strip() for o in self.operands if _is_memory(o)), None)

    @cached_property
    def _accesses(self) -> tuple[bool, bool]:
        """Whether it reads, and whether it writes, its memory operand."""
        if self.memory is None or _NO_ACCESS.fullmatch(self.mnemonic) or "branch" in _control(self.mnemonic):
            return False, False
        if "call" in _control(self.mnemonic) or not _is_memory(self.operands[-1]):
            return True, False
        if _READS_LAST.fullmatch(self.mnemonic):
            return True, False
        return not (self.mnemonic.startswith("v") or _OVERWRITES_LAST.fullmatch(self.mnemonic)), True

    @cached_property
    def bits(self) -> int:
        """The bits of the widest vector register among its operands; 0 if there is none."""
        return max((128 << "xyz".index(name) for o in self.operands for name, _ in _REGISTER.findall(o)), default=0)

    @cached_property
    def float_bits(self) -> int:
        """The bits of an element of its floating-point arithmetic; 0 for other instructions."""
        match = _FUSED.fullmatch(self.mnemonic) or _ARITHMETIC.fullmatch(self.mnemonic)
        return _ELEMENT[match[1]] if match else 16 if self.mnemonic == "vdpbf16ps" else 0

    @cached_property
    def lanes(self) -> int:
        """The number of elements of its floating-point arithmetic: 1 for scalars, 0 for other instructions."""
        if not self.float_bits:
            return 0
        scalar = self.mnemonic[-2] == "s"
        return 1 if scalar else self.bits // self.float_bits

    @property
    def registers(self) -> str:
        """The name of its widest vector registers, zmm, ymm or xmm; "" without them."""
        return f"{'xyz'[self.bits // 256]}mm" if self.bits else ""

    @property
    def is_scalar(self) -> bool:
        """Whether its floating-point arithmetic is on scalars."""
        return self.lanes == 1 and self.mnemonic[-2] == "s"

    @property
    def is_jump(self) -> bool:
        """Whether it is an unconditional jump."""
        return self.mnemonic.startswith("jmp")

    @property
    def flops(self) -> int:
        """Floating-point operations: additions, multiplications, divisions, roots, minima and maxima; for each lane; an
        fma is two, a dot product of bf16 two for each 16-bit element. 0 for other instructions."""
        return self.lanes * (2 if "fma" in self.kinds else 1)

    @property
    def target(self) -> str | None:
        """The target of a jump or a direct call; without `@PLT`; None for indirect ones and other instructions. An
        unconditional jump is one."""
        has_target = bool({"branch", "call"} & self.kinds) and bool(self.operands)
        return None if not has_target or self.operands[0].startswith("*") else self.operands[0].removesuffix("@PLT")

    @property
    def reads_last(self) -> bool:
        """Whether the former value of its last operand is an input; meaningless without operands."""
        masked = self.operands and "{%k" in self.operands[-1] and "{z}" not in self.operands[-1]
        if self.mnemonic.startswith("v"):
            return bool(masked) or "fma" in self.kinds or self.mnemonic.startswith(("vpermt2", "vpermi2", "vpternlog"))
        return not _OVERWRITES_LAST.fullmatch(self.mnemonic) and not self.mnemonic.startswith("lea")

    @property
    def writes_last(self) -> bool:
        """Whether its last operand is written; False without operands."""
        return bool(self.operands) and not (
            _READS_LAST.fullmatch(self.mnemonic) or {"branch", "call", "prefetch"} & self.kinds
        )

    @property
    def is_move(self) -> bool:
        """Whether it is a register copy, a plain load or store, or a no-op."""
        return bool(_MOVE.fullmatch(self.mnemonic))

    @property
    def lanes_moved(self) -> int:
        """The number of elements that a gather or scatter accesses, from the widths of its indices and elements; of no
        use for other instructions."""
        element_widths = {"q": 64, "d": 32}
        widest_bits = max(
            (element_widths.get(letter, 32) for letter in self.mnemonic.partition("er")[2][:2]), default=32
        )
        return max(1, self.bits // widest_bits)

    @cached_property
    def addressed(self) -> tuple[str, ...]:
        """The registers of its address, by family: ax, r8, v3."""
        return _families(self.memory or "")

    @cached_property
    def read(self) -> tuple[str, ...]:
        """The input registers by family, `ax` for `%eax` and `%rax`, each as often as it occurs, without those of
        addresses and the masks of memory operands and of zero-masked destinations; none for an xor of equal operands,
        which sets its register to zero."""
        if re.fullmatch(r"v?p?xor\w+", self.mnemonic) and len(set(self.operands)) == 1:
            return ()  # sets a register to zero, whatever was in it
        sources = self.operands if self.reads_last or not self.writes_last else self.operands[:-1]
        return tuple(name for o in sources if not _is_memory(o) for name in _families(o))

    @cached_property
    def written(self) -> tuple[str, ...]:
        """The output registers, by family: its last operand, if that is written and no memory."""
        last = self.operands[-1].partition(" ")[0] if self.writes_last else ""
        return () if _is_memory(last) else _families(last)


def parse_instruction(text: str, loop: int = 0) -> Instruction:
    """Parse an instruction from a line, which must not be blank; prefixes such as lock or rep are dropped. loop: its
    debug location or 0."""
    words = text.split(None, 1)
    while words[0] in ("lock", "rep", "repe", "repne", "notrack") and len(words) == 2:
        words = words[1].split(None, 1)
    operands = re.split(r",(?![^()]*\))", words[1]) if len(words) == 2 else []
    return Instruction(words[0], tuple(operand.strip() for operand in operands), loop)


def _families(operand: str) -> tuple[str, ...]:
    """Return the register families of an operand, without the instruction pointer: `%eax` and `%rax` are both `ax`."""
    families = (_family(name) for name in re.findall(r"%(\w+)", operand))
    return tuple(name for name in families if name != "ip")


def _family(name: str) -> str:
    vector = re.fullmatch(r"[xyz]mm(\d+)", name)
    numbered = re.fullmatch(r"(r\d+)[bwd]?", name)
    if vector or numbered:
        return f"v{vector[1]}" if vector else numbered[1] if numbered else name
    plain = re.fullmatch(r"[re]?([abcd]x|[sd]il?|[sb]pl?|ip)|([abcd])[lh]", name)
    return name if plain is None else f"{plain[2]}x" if plain[2] else plain[1].removesuffix("l")


def _is_memory(operand: str) -> bool:
    return ("(" in operand and not operand.startswith("$")) or operand.startswith(("%fs:", "%gs:"))


def _control(mnemonic: str) -> str:
    return "call" if mnemonic.startswith("call") else "branch" if _JUMP.fullmatch(mnemonic) else ""


@dataclass(frozen=True)
class InstructionCounts:
    """Counts of a loop's instructions in one iteration, if it executes each of them once.

    loads, stores: of memory, including memory operands of arithmetic, broadcasts, gathers and scatters.
    stack_loads, stack_stores: those on the stack, such as spills.
    branches: jumps other than the back edge. calls: the callees, in order.
    width: zmm, ymm, xmm, q, d or scalar, by most floating-point operations; without any the widest register, or "".
    float_bits: the bits of an element in most floating-point operations, 0 without any.
    """

    instructions: int
    width: str
    float_bits: int
    flops: int
    fma: int
    loads: int
    stores: int
    stack_loads: int
    stack_stores: int
    broadcasts: int
    gathers: int
    scatters: int
    shuffles: int
    divisions: int
    branches: int
    calls: tuple[str, ...]

    @property
    def loads_per_fma(self) -> float | None:
        """Loads for each fma; None without fma."""
        return self.loads / self.fma if self.fma else None

    @property
    def stores_per_fma(self) -> float | None:
        """Stores for each fma; None without fma."""
        return self.stores / self.fma if self.fma else None


def count_instructions(
    instructions: Sequence[Instruction], frame: Sequence[str] = ("%rsp",), calls: Sequence[str] = ()
) -> InstructionCounts:
    """Count instructions by kind. frame: the registers that address the stack, such as `%rsp`. calls: the callees,
    which the result repeats. One branch, the back edge, is not counted among the branches."""
    kinds = Counter(kind for i in instructions for kind in i.kinds)
    stack = Counter(kind for i in instructions if on_stack(i, frame) for kind in i.kinds)
    flops_by_width: Counter[int] = Counter()
    for i in instructions:
        flops_by_width[i.float_bits] += i.flops
    del flops_by_width[0]
    return InstructionCounts(
        instructions=len(instructions),
        width=_width(instructions),
        float_bits=max(flops_by_width, key=flops_by_width.__getitem__, default=0),
        flops=sum(i.flops for i in instructions),
        fma=kinds["fma"],
        loads=kinds["load"],
        stores=kinds["store"],
        stack_loads=stack["load"],
        stack_stores=stack["store"],
        broadcasts=kinds["broadcast"],
        gathers=kinds["gather"],
        scatters=kinds["scatter"],
        shuffles=kinds["shuffle"],
        divisions=kinds["division"],
        branches=max(0, kinds["branch"] - 1),
        calls=tuple(calls),
    )


def on_stack(instruction: Instruction, frame: Sequence[str]) -> bool:
    """Return whether an instruction's memory operand is addressed by one of the registers `frame`, such as `%rsp`;
    False without a memory operand."""
    memory = instruction.memory or ""
    return any(f"{bracket}{name}" in memory for name in frame for bracket in "([")


def _width(instructions: Sequence[Instruction]) -> str:
    flops: Counter[str] = Counter()
    for i in instructions:
        if i.flops:
            flops["scalar" if i.is_scalar else i.registers] += i.flops
    if flops:
        return max(flops, key=flops.__getitem__)
    return max(instructions, key=lambda i: i.bits).registers if instructions else ""
