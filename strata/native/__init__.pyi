from compiler.native import *
from strata.native import unit as unit
