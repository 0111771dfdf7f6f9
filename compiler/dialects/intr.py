"""The intr dialect: operations of processors that upstream's dialects lack, each with its spelling in every target."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloatConstr, UnitAttr, VectorType, f32, f64, i32, i64
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from compiler.dialects.upstream.casts import element_of, shape_of

LIBRARY = "library"
"""The attribute of a math op that is lowered to a call of the C library, even where others become a polynomial."""

_COUNTS: dict[Attribute, Attribute] = {f32: i32, f64: i64}


@irdl_op_definition
class LdexpOp(IRDLOperation):
    """x times 2 to the power n, rounded once where the result is subnormal.

    ```mlir
    func.func @scaled(%x: vector<16xf32>, %n: vector<16xi32>) -> vector<16xf32> {
      %y = intr.ldexp %x, %n : vector<16xf32>, vector<16xi32>
      func.return %y : vector<16xf32>
    }
    ```

    x is an f32 or f64, n an integer of as many bits, or vectors of both. Requires that x is normal (or not finite, or
    zero), and that |n| is at most twice the exponent's bias, which is enough for every result; otherwise the result is
    undefined, unless x is NaN. `normal` states that 2 to the power n and the result are normal too: a processor without
    a scaling instruction then needs one multiplication. AVX-512 has it as vscalefps. Source: C's ldexp, LLVM's
    llvm.ldexp.
    """

    name = "intr.ldexp"

    T: ClassVar = VarConstraint("T", AnyFloatConstr | VectorType.constr(AnyFloatConstr))
    x = operand_def(T)
    n = operand_def()
    normal = opt_prop_def(UnitAttr)
    result = result_def(T)
    assembly_format = "$x `,` $n (`normal` $normal^)? attr-dict `:` type($x) `,` type($n)"
    traits = traits_def(Pure())

    def __init__(self, x: SSAValue | Operation, n: SSAValue | Operation, normal: bool = False) -> None:
        properties = {"normal": UnitAttr() if normal else None}
        super().__init__(operands=[x, n], result_types=[SSAValue.get(x).type], properties=properties)

    def verify_(self) -> None:
        real, count = self.x.type, self.n.type
        fitting = _COUNTS.get(element_of(real))
        if fitting is None or element_of(count) != fitting or shape_of(real) != shape_of(count):
            raise VerifyException(f"{real} cannot be scaled by powers of two in {count}")


INTR = Dialect("intr", [LdexpOp])
