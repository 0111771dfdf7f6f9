"""Passes: module to module on one level."""
