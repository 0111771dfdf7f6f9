from compiler.program.tree import *
