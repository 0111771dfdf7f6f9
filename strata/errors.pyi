from compiler.errors import *
