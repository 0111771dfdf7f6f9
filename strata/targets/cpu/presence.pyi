from compiler.targets.cpu.presence import *
