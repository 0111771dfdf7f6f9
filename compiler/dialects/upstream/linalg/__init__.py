"""linalg: MLIR has about ninety named ops, and a syntax that xDSL reads in part.

structures.py  the tables of named ops: their maps
bodies.py      their scalar bodies
syntax.py      operands, properties and results as MLIR writes them
attributes.py  attributes that are a word
generic.py     linalg.generic
named.py       the ops of the tables
special.py     transpose, broadcast, reduce, map, softmax
packing.py     pack and unpack
"""

from __future__ import annotations

from xdsl.dialects.linalg.attrs import IteratorTypeAttr
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Dialect, Operation

from compiler.dialects.upstream.linalg.attributes import ElementwiseKindAttr, TypeFunctionAttr
from compiler.dialects.upstream.linalg.generic import GenericOp
from compiler.dialects.upstream.linalg.named import NAMED, ContractOp, ElementwiseOp, FillOp
from compiler.dialects.upstream.linalg.packing import PackOp, UnpackOp
from compiler.dialects.upstream.linalg.special import (
    FORMLESS_OPS,
    BroadcastOp,
    IndexOp,
    MapOp,
    ReduceOp,
    SoftmaxOp,
    TransposeOp,
)

_OPERATIONS: list[type[Operation]] = [GenericOp, YieldOp, IndexOp, ElementwiseOp, FillOp, ContractOp, *NAMED]
_OPERATIONS += [TransposeOp, BroadcastOp, ReduceOp, MapOp, SoftmaxOp, PackOp, UnpackOp, *FORMLESS_OPS]

LINALG = Dialect("linalg", _OPERATIONS, [IteratorTypeAttr, TypeFunctionAttr, ElementwiseKindAttr])
