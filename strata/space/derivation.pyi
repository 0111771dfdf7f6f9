from compiler.space.derivation import *
