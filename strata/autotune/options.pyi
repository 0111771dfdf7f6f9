from compiler.autotune.options import *
