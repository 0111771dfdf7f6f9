from compiler.driver import *
from strata.driver import units as units
