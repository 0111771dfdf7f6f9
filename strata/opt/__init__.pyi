from compiler.opt import *
