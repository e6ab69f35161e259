"""``python -m pomdp_hier`` is ``pomdp-hier``."""

import sys

from pomdp_hier.cli import main

if __name__ == "__main__":
    sys.exit(main())
