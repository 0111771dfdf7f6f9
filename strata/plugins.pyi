from compiler.support.plugins import *
