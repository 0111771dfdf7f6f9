from compiler.autotune.search.supply import *
