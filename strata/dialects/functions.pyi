from compiler.dialects.functions import *
