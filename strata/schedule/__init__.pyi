from compiler.schedule import *
from strata.schedule import parameters as parameters
from strata.schedule import plan as plan
from strata.schedule import primitive as primitive
from strata.schedule import primitives as primitives
