"""Files of example programs and scripts that come with the package."""

from compiler.examples import FILES, path

__all__ = ["FILES", "path"]
