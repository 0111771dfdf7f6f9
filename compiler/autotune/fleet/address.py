"""What dask is given: the address of a scheduler, checked before anything waits for it."""

from __future__ import annotations

from compiler.support.errors import InputError


def checked(address: str) -> str:
    """An address such as `tcp://host:8786`. Raises InputError where dask is missing, or the address is none."""
    try:
        from distributed.comm import get_address_host_port
        from distributed.comm.addressing import parse_address
        from distributed.comm.registry import get_backend
    except ImportError:
        raise InputError("a fleet needs dask: pip install 'strata-compiler[fleet]'") from None
    try:
        scheme, _ = parse_address(address, strict=True)
        get_backend(scheme)
        _, port = get_address_host_port(address, strict=True)
        if not 0 < port < 1 << 16:
            raise ValueError(f"{port} is no port")
    except (ValueError, TypeError) as error:
        raise InputError(f"no scheduler at '{address}': an address is such as tcp://host:8786 ({error})") from error
    return address
