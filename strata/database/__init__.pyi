from compiler.database import *
from strata.database import replay as replay
