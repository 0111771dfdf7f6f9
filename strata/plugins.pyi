from compiler.plugins import *
