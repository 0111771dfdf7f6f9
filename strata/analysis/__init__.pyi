from compiler.analysis import *
from strata.analysis import cost as cost
