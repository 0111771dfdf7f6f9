from compiler.autotune.database import *
from strata.autotune.database import replay as replay
