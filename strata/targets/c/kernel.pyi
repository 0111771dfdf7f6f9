from compiler.targets.c.kernel import *
