from compiler.schedule.primitives import *
from strata.schedule.primitives import split as split
