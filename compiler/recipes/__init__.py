"""Recipes: one file a family of programs, with what it matches, the sizes that a machine suggests, and the schedule.

draft.py         `Draft`: what a recipe or rule writes on; `Alternative`; `Rule`
sizes.py         sizes that caches and registers suggest
channels_last.py convolutions with channels last: filters in lanes
winograd.py      convolutions by Winograd's transforms
"""
