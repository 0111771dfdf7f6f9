from compiler.autotune import *
from strata.autotune import options as options
from strata.autotune import search as search
from strata.autotune import task as task
from strata.autotune import tell as tell
