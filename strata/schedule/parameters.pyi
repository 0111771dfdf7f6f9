from compiler.schedule.parameters import *
