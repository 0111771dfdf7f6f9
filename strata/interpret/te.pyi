from compiler.interpret.te import *
