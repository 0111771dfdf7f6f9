from compiler.graph.read import *
