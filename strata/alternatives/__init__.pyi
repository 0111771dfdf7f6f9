from compiler.alternatives import *
from strata.alternatives import law as law
from strata.alternatives import program as program
