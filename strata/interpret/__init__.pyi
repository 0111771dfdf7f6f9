from compiler.interpret import *
from strata.interpret import te as te
