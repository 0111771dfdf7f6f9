from compiler.autotune.database.replay import *
