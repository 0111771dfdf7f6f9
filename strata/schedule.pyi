from compiler.schedule import *
