from compiler.autotune.space.candidates import *
