from compiler.space import *
from strata.space import candidates as candidates
from strata.space import derivation as derivation
