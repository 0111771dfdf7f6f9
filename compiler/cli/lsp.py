"""`strata lsp`: the language server, which editors start."""

from __future__ import annotations

import argparse
import os

from compiler.cli.values import positive
from compiler.support.errors import InputError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    add = parser.add_argument
    add("--tcp", type=positive, metavar="PORT", help="listen on a port of this machine instead of the standard streams")
    add(
        "--limit",
        type=positive,
        default=10,
        metavar="SECONDS",
        help="the limit of checks that run passes (default: 10)",
    )
    add("--stdio", action="store_true", help="use the standard streams, as without --tcp")


def run(options: argparse.Namespace) -> int:
    """Serve a client until it ends the connection; return 0. Raises InputError if pygls is not installed, for a port
    above 65535 or in use, and for --tcp with --stdio."""
    if options.tcp is not None and (options.stdio or options.tcp > 65535):
        raise InputError(
            "--tcp and --stdio exclude each other" if options.stdio else f"there is no port {options.tcp}: 1 to 65535"
        )
    try:
        from compiler.lsp.server import serve
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise InputError("the language server needs pygls: pip install 'strata-compiler[lsp]'") from None
    try:
        serve(options.tcp, options.limit)
    except OSError as error:
        if options.tcp is None:
            raise
        raise InputError(f"the port {options.tcp} cannot be used: {os.strerror(error.errno or 0)}") from error
    return 0
