from compiler.autotune.space.rules.derive import *
