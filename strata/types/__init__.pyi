from compiler.types import *
from strata.types import machines as machines
