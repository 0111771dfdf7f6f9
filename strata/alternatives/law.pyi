from compiler.alternatives.law import *
