from compiler.driver import *
