"""`cache_folder`: the folder of the cache by the environment, or why caching is off."""

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
    """The folder of the cache, which need not exist; None, with a `reason`, if caching is off."""

    path: Path | None
    reason: str = ""


def cache_folder() -> CacheFolder:
    """The folder STRATA_CACHE_DIR, else `strata` in $XDG_CACHE_HOME, else in ~/.cache; none, with the reason, if
    STRATA_CACHE is off or there is no home folder."""
    if os.environ.get(SWITCH, "").strip().lower() == "off":
        return CacheFolder(None, f"{SWITCH} is off")
    folder, caches = os.environ.get(FOLDER, ""), os.environ.get("XDG_CACHE_HOME", "")
    if folder:
        return CacheFolder(Path(folder).absolute())
    if os.path.isabs(caches):
        return CacheFolder(Path(caches) / "strata")
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        return CacheFolder(None, f"there is no home folder, and {FOLDER} is not set")
    return CacheFolder(Path(home) / ".cache" / "strata")
