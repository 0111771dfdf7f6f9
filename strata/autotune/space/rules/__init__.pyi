from compiler.autotune.space.rules import *
from strata.autotune.space.rules import derive as derive
