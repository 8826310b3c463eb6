"""Where fitune keeps what it made or fetched once: ``FITUNE_CACHE``, else the platform's cache directory."""

import os
import sys
from pathlib import Path

__all__ = ["cache_directory"]


def cache_directory() -> Path:
    """The directory (it may not exist yet)."""
    if chosen := os.environ.get("FITUNE_CACHE"):
        return Path(chosen).expanduser()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "fitune" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fitune"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fitune"
