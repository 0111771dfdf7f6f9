from compiler.targets.c import *
from strata.targets.c import kernel as kernel
