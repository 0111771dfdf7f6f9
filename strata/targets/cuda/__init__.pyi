from compiler.targets.cuda import *
