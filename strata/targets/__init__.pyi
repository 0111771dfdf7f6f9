from compiler.targets import *
from strata.targets import c as c
from strata.targets import cpu as cpu
from strata.targets import cuda as cuda
from strata.targets import simt as simt
from strata.targets import target as target
