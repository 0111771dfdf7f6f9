from compiler.targets.machine import *
