from compiler.autotune.tell import *
from strata.autotune.tell import facts as facts
