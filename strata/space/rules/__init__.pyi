from compiler.space.rules import *
from strata.space.rules import derive as derive
