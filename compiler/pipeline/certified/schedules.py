"""`verdict_of`: whether the loops of a group compute its te function."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from compiler.analysis.verify.prove import Verdict, verify_schedule
from compiler.certificate.text import GroupCertificate
from compiler.dialects import te
from compiler.graph.canonical import canonical
from compiler.graph.read import read as read_graph
from compiler.graph.user_names import graph_with_user_names
from compiler.graph.write import write
from compiler.lowering.te_to_loop.nests import program_of
from compiler.passes.fold_constants import fold_constants
from compiler.pipeline.certified.texts import DigestOnly, function_of, te_function_of
from compiler.program.read import read


def verdict_of(group: GroupCertificate) -> Verdict:
    """Prove that the loops of a group compute its te function: as written, in its canonical form under its names, or
    with computes of constants evaluated. Raises InputError for texts that are no programs."""
    if not group.te:
        return Verdict("undecided", "it was given as loops, without a te function")
    function = te_function_of(group.te, f"@{group.name}")
    loops = read(function_of(group.loops, f"@{group.name}"))
    verdict = verify_schedule(loops, program_of(function))
    if verdict or (other := verify_schedule(loops, program_of(_canonical(function)))):
        return verdict or other
    constants = [op for op in function.body.block.ops if isinstance(op, te.ConstantOp)]
    if any(isinstance(op.value.data, DigestOnly) for op in constants):
        return Verdict("undecided", f"the certificate lacks the elements of constants; without them: {verdict.reason}")
    return verify_schedule(loops, program_of(function)) if constants and fold_constants(function) else verdict


def _canonical(function: FuncOp) -> FuncOp:
    """Return the canonical form of a te function, with the inputs, results and names of the function."""
    graph = read_graph(function)
    form = canonical(graph, keep_signature=False)
    written = write(graph_with_user_names(form.with_signature_of(graph), form.names))
    for value, former in zip(_interface(written), _interface(function), strict=True):
        value.name_hint = former.name_hint
    return written


def _interface(function: FuncOp) -> list[SSAValue]:
    """The inputs and the results of a te function."""
    end = function.body.block.last_op
    return [*function.args, *(end.operands if end is not None else ())]
