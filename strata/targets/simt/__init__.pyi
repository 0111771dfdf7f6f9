from compiler.targets.simt import *
