from compiler.recipes.rules import *
