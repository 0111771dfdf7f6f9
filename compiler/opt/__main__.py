"""`python -m compiler.opt`."""

import sys

from compiler.opt import main

sys.exit(main())
