from compiler.space.candidates import *
