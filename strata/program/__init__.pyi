from compiler.program import *
from strata.program import tree as tree
