"""strata-opt from a checkout."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from compiler.opt import main

if __name__ == "__main__":
    sys.exit(main())
