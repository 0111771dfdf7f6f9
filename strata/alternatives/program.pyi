from compiler.alternatives.program import *
