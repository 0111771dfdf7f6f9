from compiler.graph.whole import *
