from compiler.frontends.torch import *
