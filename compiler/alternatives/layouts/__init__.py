"""channels-last: store images between convolutions with their channels innermost if an estimate prefers it.

layout.py      the order of an image's dimensions
relaid.py      a graph with some values channels last
images.py      convolutions, and sets of images that share a layout
estimate.py    the cycles of a compute by the layouts of its operands and result
assignment.py  booleans with the least sum of costs
plan.py        the layouts with the fewest cycles, and the law
"""

from compiler.alternatives.layouts.plan import CHANNELS_LAST, choose_layouts, layout_costs

__all__ = ["CHANNELS_LAST", "choose_layouts", "layout_costs"]
