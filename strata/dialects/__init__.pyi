from compiler.dialects import *
from strata.dialects import functions as functions
