from compiler.schedule.library import *
