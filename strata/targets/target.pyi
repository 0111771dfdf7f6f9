from compiler.targets.target import *
