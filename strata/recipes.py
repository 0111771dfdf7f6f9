"""Recipes: schedules by family, callable by hand, and the rules that derive the search space."""

from compiler.recipes import *  # noqa: F403
from compiler.recipes import __all__ as _families
from compiler.recipes.rules import GPU_RULES, RULES, Alternative, Draft, Rule

__all__ = [*_families, "Alternative", "Draft", "GPU_RULES", "RULES", "Rule"]
