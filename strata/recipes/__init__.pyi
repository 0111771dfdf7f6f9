from compiler.recipes import *
from strata.recipes import rules as rules
