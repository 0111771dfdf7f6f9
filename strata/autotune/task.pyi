from compiler.autotune.task import *
