"""`export_kernel`: a kernel of this process as a library."""

from __future__ import annotations

import os
from pathlib import Path

from compiler.certificate.text import Certificate, version
from compiler.support.errors import TargetError
from compiler.support.files import to_path
from compiler.targets.cpu.kernel import Kernel
from compiler.targets.cpu.library.description import describe
from compiler.targets.cpu.library.export import Weights, export_program, library_name


def export_kernel(kernel: Kernel, path: str | os.PathLike[str], weights: str, name: str | None) -> list[Path]:
    """Write a kernel as a library, and return the paths; arguments and errors are those of `Kernel.export`."""
    if kernel.program is None:
        raise TargetError(f"{kernel.name}: {kernel._refusal}")
    file = to_path(path)
    description = describe(library_name(file, name), [kernel.program.linked])
    arrays = {f"constants for {kernel.program.linked.machine.cpu}": kernel.program.block}
    weights_ = Weights(arrays if description.weights else {}, True, weights)
    certificate = None
    if "certificate" in kernel.levels:
        certificate = Certificate(description.name, [version(kernel.text("certificate"))])
    return export_program(description, weights_, file, certificate)
