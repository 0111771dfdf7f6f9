from compiler.graph.grouping import *
