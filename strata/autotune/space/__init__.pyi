from compiler.autotune.space import *
from strata.autotune.space import candidates as candidates
from strata.autotune.space import rules as rules
