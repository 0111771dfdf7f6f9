from compiler.space.rules.derivation import *
