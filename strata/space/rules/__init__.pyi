from compiler.space.rules import *
from strata.space.rules import derivation as derivation
