from compiler.targets.cpu import *
from strata.targets.cpu import presence as presence
