"""`place`: the folder of the cache, or why caching is off, by the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

FOLDER = "STRATA_CACHE_DIR"
"""The environment variable that names the folder."""
SWITCH = "STRATA_CACHE"
"""The environment variable that, if it is "off", switches the cache off."""


@dataclass(frozen=True)
class CacheFolder:
    """The folder of the cache, which need not exist; None if caching is off, and then the reason."""

    path: Path | None
    why: str = ""


def place() -> CacheFolder:
    """What STRATA_CACHE_DIR names, else `strata` in $XDG_CACHE_HOME, else in ~/.cache."""
    if os.environ.get(SWITCH, "").strip().lower() == "off":
        return CacheFolder(None, f"{SWITCH} is off")
    stated, caches = os.environ.get(FOLDER, ""), os.environ.get("XDG_CACHE_HOME", "")
    if stated:
        return CacheFolder(Path(stated).absolute())
    if os.path.isabs(caches):
        return CacheFolder(Path(caches) / "strata")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return CacheFolder(None, f"there is no home folder, and {FOLDER} is not set")
    return CacheFolder(Path(home) / ".cache" / "strata")
