from compiler.types.machines import *
