from compiler.support.errors import *
