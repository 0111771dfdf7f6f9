from compiler.te import *
