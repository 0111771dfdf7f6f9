from compiler.native.unit import *
