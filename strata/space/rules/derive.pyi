from compiler.space.rules.derive import *
