from compiler.graph import *
from strata.graph import canonical as canonical
from strata.graph import grouping as grouping
from strata.graph import read as read
from strata.graph import whole as whole
