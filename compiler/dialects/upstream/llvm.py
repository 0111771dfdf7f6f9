"""llvm: xDSL's calls of intrinsics have effects, also that of llvm.ldexp, which scales by powers of two."""

from __future__ import annotations

from collections.abc import Sequence, Set

from xdsl.dialects import llvm
from xdsl.dialects.builtin import AnyFloat, DenseArrayBase, IntegerType, StringAttr, UnitAttr, f32, f64, i32, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    opt_result_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import EffectInstance, MemoryEffect
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.casts import element_of, shape_of

_COUNTS: dict[Attribute, Attribute] = {f32: i32, f64: i64}
_LDEXP = "llvm.ldexp."


class _IntrinsicEffect(MemoryEffect):
    """No effect for llvm.ldexp, an unknown one for other intrinsics."""

    @classmethod
    def get_effects(cls, op: Operation) -> Set[EffectInstance] | None:
        return set() if is_ldexp(op) else None


@irdl_op_definition
class CallIntrinsicOp(IRDLOperation):
    """A call of an LLVM intrinsic.

    ```mlir
    func.func @scaled(%x: vector<16xf32>, %n: vector<16xi32>) -> vector<16xf32> {
      %y = llvm.call_intrinsic "llvm.ldexp.v16f32.v16i32"(%x, %n) : (vector<16xf32>, vector<16xi32>) -> vector<16xf32>
      func.return %y : vector<16xf32>
    }
    ```

    Only llvm.ldexp is lowered: x times 2 to the power n, rounded once where the result is subnormal. x is an f32 or
    f64, n an integer of as many bits, or vectors of both. It requires that x is normal (or not finite, or zero), and
    that |n| is at most twice the exponent's bias, which is enough for every result; otherwise the result is undefined,
    unless x is NaN. The attribute `normal` states that 2 to the power n and the result are normal too: a processor
    without a scaling instruction then needs one multiplication. AVX-512 has it as vscalefps.
    """

    name = "llvm.call_intrinsic"
    fastmathFlags = prop_def(llvm.FastMathAttr, default_value=llvm.FastMathAttr(None))
    intrin = prop_def(StringAttr)
    op_bundle_sizes = prop_def(DenseArrayBase.constr(i32), default_value=DenseArrayBase.from_list(i32, ()))
    args = var_operand_def()
    op_bundle_operands = var_operand_def()
    ress = opt_result_def()
    traits = traits_def(_IntrinsicEffect())
    assembly_format = (
        "$intrin `(` $args `)` (`[` $op_bundle_operands^ `:` type($op_bundle_operands) `]`)? attr-dict "
        "`:` functional-type($args, results)"
    )
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(self, intrin: str, args: Sequence[SSAValue], result_types: Sequence[Attribute]) -> None:
        super().__init__(operands=[args, []], result_types=[result_types], properties={"intrin": StringAttr(intrin)})

    def verify_(self) -> None:
        if not self.intrin.data.startswith("llvm."):
            raise VerifyException(f"the name of an intrinsic starts with 'llvm.', not '{self.intrin.data}'")
        if not is_ldexp(self):
            return
        if len(self.args) != 2 or self.ress is None or self.ress.type != self.args[0].type:
            raise VerifyException(f"'{self.intrin.data}' has two operands and a result of the first one's type")
        real, count = (value.type for value in self.args)
        fitting = _COUNTS.get(element_of(real))
        if fitting is None or element_of(count) != fitting or shape_of(real) != shape_of(count):
            raise VerifyException(f"{real} cannot be scaled by powers of two in {count}")
        if self.intrin.data != _name(real, count):
            raise VerifyException(f"on these operands the intrinsic is '{_name(real, count)}'")


def is_ldexp(op: Operation) -> bool:
    """Whether an op calls llvm.ldexp."""
    return isinstance(op, CallIntrinsicOp) and op.intrin.data.startswith(_LDEXP)


def ldexp(x: SSAValue, n: SSAValue, normal: bool = False) -> CallIntrinsicOp:
    """Build x times 2 to the power n, of the type of x; with `normal` the power and the result are stated to be
    normal."""
    op = CallIntrinsicOp(_name(x.type, n.type), [x, n], [x.type])
    if normal:
        op.attributes["normal"] = UnitAttr()
    return op


def _name(real: Attribute, count: Attribute) -> str:
    """The name of llvm.ldexp for the types of x and n, such as llvm.ldexp.v16f32.v16i32."""
    return f"{_LDEXP}{_suffix(real)}.{_suffix(count)}"


def _suffix(type: Attribute) -> str:
    element, shape = element_of(type), shape_of(type)
    assert isinstance(element, AnyFloat | IntegerType)
    return f"{f'v{shape[0]}' if shape else ''}{'i' if isinstance(element, IntegerType) else 'f'}{element.bitwidth}"


_OPS = [CallIntrinsicOp if op is llvm.CallIntrinsicOp else op for op in llvm.LLVM.operations]
LLVM = Dialect("llvm", _OPS, list(llvm.LLVM.attributes))
