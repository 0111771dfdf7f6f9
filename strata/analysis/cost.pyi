from compiler.analysis.cost import *
