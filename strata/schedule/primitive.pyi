from compiler.schedule.primitive import *
