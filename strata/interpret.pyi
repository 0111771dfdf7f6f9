from compiler.interpret import loop as loop
from compiler.interpret import te as te
