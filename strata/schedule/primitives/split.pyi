from compiler.schedule.primitives.split import *
