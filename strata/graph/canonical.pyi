from compiler.graph.canonical import *
