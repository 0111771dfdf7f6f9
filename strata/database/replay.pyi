from compiler.database.replay import *
