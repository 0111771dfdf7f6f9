from compiler.support.spans import *
