from compiler.driver.units import *
from strata.driver.units import unit as unit
