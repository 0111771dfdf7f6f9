from compiler.autotune.search import *
from strata.autotune.search import supply as supply
