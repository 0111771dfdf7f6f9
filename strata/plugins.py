"""Plugins: parts that other packages and files add to the compiler."""

from compiler.support.plugins import Part, PluginError, Registry, load_file, loaded, parts, registries

__all__ = ["Part", "PluginError", "Registry", "load_file", "loaded", "parts", "registries"]
