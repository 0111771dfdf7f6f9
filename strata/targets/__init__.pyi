from compiler.targets import *
from strata.targets import cpu as cpu
from strata.targets import cuda as cuda
from strata.targets import simt as simt
