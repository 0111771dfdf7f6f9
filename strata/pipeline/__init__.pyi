from compiler.pipeline import *
