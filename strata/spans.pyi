from compiler.spans import *
