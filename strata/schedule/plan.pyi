from compiler.schedule.plan import *
